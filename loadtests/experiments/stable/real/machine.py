"""CPU use of this machine and of the nodes' pods, to tell whether the machine was saturated."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadtests.experiments.stable.driver import Machine
from loadtests.nodes.cgroups import PODS
from loadtests.nodes.node import Node
from loadtests.workloads.load_tools import LoadResult

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Reading:
    at: float
    busy: float
    """CPU-seconds that anybody used."""
    pods: Mapping[str, float]
    """CPU-seconds that the pods of each node used."""


def read_machine(nodes: Mapping[str, Node]) -> Reading:
    pods = {name: _used(node) for name, node in nodes.items()}
    return Reading(time.monotonic(), busy_seconds(Path("/proc/stat").read_text()), pods)


def busy_seconds(stat: str) -> float:
    """User, nice, system, interrupts and steal: all but idle and waiting for disks."""
    words = stat.splitlines()[0].split()
    user, nice, system, _, _, irq, softirq, steal = (int(word) for word in words[1:9])
    return (user + nice + system + irq + softirq + steal) / _TICKS


def cores_used(before: Reading, after: Reading) -> dict[str, float]:
    return {name: (after.pods[name] - before.pods[name]) / (after.at - before.at) for name in after.pods}


def seconds_per_round(before: Reading, after: Reading, resting: float, rounds: float) -> float:
    """CPU of a round of requests, one to each app, beyond the cores that the pods use at rest.

    What the readings cover before the first request and after the last answer only adds rest.
    """
    return (sum(cores_used(before, after).values()) - resting) * (after.at - before.at) / rounds


def machine_between(
    before: Reading, after: Reading, promised: float, load: LoadResult, delay_ms: float | None
) -> Machine:
    """The cores that are not promised to the nodes, and how many of them were idle."""
    outside = (os.cpu_count() or 1) - promised
    seconds = after.at - before.at
    pods = sum(cores_used(before, after).values())
    others = (after.busy - before.busy) / seconds - pods
    return Machine(outside - others, outside, load.late_ms, load.unsent, delay_ms)


def _used(node: Node) -> float:
    """Of the node's group of pods, in seconds."""
    for group in node.cgroups.groups(node.group):
        counter = group / PODS / "cpuacct.usage"
        if counter.exists():
            return int(counter.read_text()) / 1e9
        stat = group / PODS / "cpu.stat"
        if node.cgroups.version == 2 and stat.exists():
            return _usage_of(stat.read_text())
    raise OSError(f"no CPU accounting of {node.name}")


def _usage_of(stat: str) -> float:
    values = dict(line.split() for line in stat.splitlines())
    return int(values["usage_usec"]) / 1e6
