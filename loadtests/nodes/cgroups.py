"""A node's control groups: the pods share one CPU quota, the node's own processes are beside it, memory is for all.

With version 1 every controller is a hierarchy of its own; with version 2 there is one. Inside the node's cgroup
namespace the node's group is the root.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadtests.nodes.spec import LabError

_PERIOD_US = 100_000
_WEIGHT = 4
"""A whole node counts as so many ordinary processes; else it would be one among many on a busy machine."""
_MIB = 1 << 20
_END_SECONDS = 10.0
_V2_CONTROLLERS = ("cpuset", "cpu", "io", "memory", "hugetlb", "pids")
PODS, SYSTEM = "pods", "sys"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    root: Path
    options: str
    """What `mount -o` wants for it; empty for version 2."""

    @property
    def name(self) -> str:
        return self.root.name


@dataclass(frozen=True, slots=True)
class Cgroups:
    version: int
    hierarchies: tuple[Hierarchy, ...]

    @classmethod
    def of_this_machine(cls, mountinfo: str | None = None) -> Cgroups:
        text = mountinfo if mountinfo is not None else Path("/proc/self/mountinfo").read_text()
        first, second = _mounted(text)
        if any("memory" in each.options.split(",") for each in first):
            return cls(1, tuple(first))
        if second and "memory" in (second[0].root / "cgroup.controllers").read_text().split():
            return cls(2, (second[0],))
        raise LabError("no control groups with memory and cpu are mounted; mount cgroup2 on /sys/fs/cgroup")

    def groups(self, name: str) -> Iterator[Path]:
        for hierarchy in self.hierarchies:
            yield hierarchy.root / name

    def make(self, name: str) -> None:
        """Empty groups, for the node's first process to start in: they become the root of its cgroup namespace."""
        for group in self.groups(name):
            _make_ours(group)
            if (group / "cpuset.cpus").exists() and self.version == 1:
                for limit in ("cpuset.mems", "cpuset.cpus"):
                    (group / limit).write_text((group.parent / limit).read_text())
                (group / "cgroup.clone_children").write_text("1")
            for part in (PODS, SYSTEM):
                (group / part).mkdir()

    def divide(self, name: str, millicores: int, memory_mib: int) -> None:
        """The first processes become the system's; only then version 2 lets the parts have limits."""
        for group in self.groups(name):
            for pid in _pids(group / "cgroup.procs"):
                (group / SYSTEM / "cgroup.procs").write_text(str(pid))
        quota, memory = str(millicores * _PERIOD_US // 1000), str(memory_mib * _MIB)
        if self.version == 2:
            group = next(self.groups(name))
            there = (group / "cgroup.controllers").read_text().split()
            wanted = " ".join(f"+{each}" for each in _V2_CONTROLLERS if each in there)
            (group / "cgroup.subtree_control").write_text(wanted)
            (group / "cpu.weight").write_text(str(100 * _WEIGHT))
            (group / PODS / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
            (group / "memory.max").write_text(memory)
            return
        (self._of("cpu", name) / "cpu.shares").write_text(str(1024 * _WEIGHT))
        pods = self._of("cpu", name) / PODS
        (pods / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        (pods / "cpu.cfs_quota_us").write_text(quota)
        (self._of("memory", name) / "memory.limit_in_bytes").write_text(memory)

    def members(self, name: str) -> set[int]:
        found: set[int] = set()
        for group in self.groups(name):
            for listed in group.rglob("cgroup.procs"):
                found |= _pids(listed)
        return found

    def end(self, name: str) -> None:
        """Kills the processes in the groups (all belong to this node) and removes the groups."""
        deadline = time.monotonic() + _END_SECONDS
        while pids := self.members(name):
            if time.monotonic() > deadline:
                raise LabError(f"processes {sorted(pids)} of {name} do not end")
            for pid in pids:
                _kill(pid)
            time.sleep(0.05)
        for group in self.groups(name):
            while not _removed(group):
                if time.monotonic() > deadline:
                    raise LabError(f"{group} cannot be removed")
                time.sleep(0.05)

    def _of(self, controller: str, name: str) -> Path:
        return next(each.root for each in self.hierarchies if controller in each.options.split(",")) / name


def _mounted(mountinfo: str) -> tuple[list[Hierarchy], list[Hierarchy]]:
    first, second = [], []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        place = Path(before.split(" ")[4])
        if kind == "cgroup":
            names = [option for option in options.split(",") if option not in ("rw", "xattr", "clone_children")]
            if "name=systemd" in names:
                names = ["none", "name=systemd"]
            first.append(Hierarchy(place, ",".join(name for name in names if "release_agent" not in name)))
        elif kind == "cgroup2":
            second.append(Hierarchy(place, ""))
    return first, second


def _make_ours(group: Path) -> None:
    try:
        group.mkdir()
    except FileExistsError as error:
        raise LabError(f"the control group {group} is there, and this lab has not made it") from error


def _pids(listed: Path) -> set[int]:
    """A process of a pid namespace that is not below ours is listed as 0, which to a signal means ourselves."""
    try:
        pids = {int(pid) for pid in listed.read_text().split()}
    except OSError:
        return set()
    if 0 in pids:
        raise LabError(f"{listed} has processes that cannot be seen from here; use the machine's own pid namespace")
    return pids


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _removed(group: Path) -> bool:
    if not group.exists():
        return True
    for folder, _, _ in os.walk(group, topdown=False):
        try:
            os.rmdir(folder)
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.ENOENT, errno.ENOTEMPTY):
                raise
    return not group.exists()
