"""Nodes are machines of their own in life: here they and what serves them can come before all else on this machine.

Only on request: on a machine that others use it takes the CPU from them. By control groups, because Linux counts
niceness only among the processes of one session.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadtests.nodes.lab import Lab

_TIMES = 20
"""The weight of each of these groups, in units of the usual."""


@contextmanager
def preferred(lab: Lab) -> Iterator[None]:
    """The nodes, the control plane, Prometheus, and this process with the controller and whatever it starts."""
    node = next(iter(lab.nodes.values()))
    for each in lab.nodes.values():
        for group in each.cgroups.groups(each.group):
            _weigh(group)
    serving = f"rematch{lab.addresses.slot}-serving"
    groups = [group for group in node.cgroups.groups(serving) if _has_weight(group.parent / node.group)]
    for group in groups:
        group.mkdir(exist_ok=True)
        _weigh(group)
        for pid in _serving(lab):
            _put(pid, group)
    try:
        yield
    finally:
        for group in groups:
            for word in (group / "cgroup.procs").read_text().split():
                _put(int(word), group.parent)
            group.rmdir()


def _serving(lab: Lab) -> list[int]:
    processes = (*lab.plane.processes.values(), lab.prometheus.process)
    return [os.getpid(), *(process.identity.pid for process in processes if process.identity is not None)]


def _has_weight(group: Path) -> bool:
    return (group / "cpu.shares").exists() or (group / "cpu.weight").exists()


def _weigh(group: Path) -> None:
    for limit, usual in ((group / "cpu.shares", 1024), (group / "cpu.weight", 100)):
        if limit.exists():
            limit.write_text(str(usual * _TIMES))


def _put(pid: int, group: Path) -> None:
    try:
        (group / "cgroup.procs").write_text(str(pid))
    except ProcessLookupError:
        return
