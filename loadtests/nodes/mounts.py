"""What a node sees of the file system, as commands to run in its mount namespace, in this order."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from loadtests.nodes.cgroups import Cgroups
from loadtests.nodes.node_files import SYSCTLS


def mount_script(folder: Path, name: str, cgroups: Cgroups) -> str:
    return "\n".join(["set -e", *(shlex.join(command) for command in _commands(folder, name, cgroups))])


def _commands(folder: Path, name: str, cgroups: Cgroups) -> Iterator[list[str]]:
    yield ["hostname", name]
    yield ["mount", "-t", "sysfs", "sysfs", "/sys"]
    yield from _cgroup_mounts(cgroups)
    for place in ("etc", "var"):
        layers = f"lowerdir=/{place},upperdir={folder}/{place}-upper,workdir={folder}/{place}-work"
        yield ["mount", "-t", "overlay", "overlay", "-o", layers, f"/{place}"]
    yield ["mount", "-t", "tmpfs", "tmpfs", "/run"]
    yield ["mkdir", "-p", "/run/netns", "/run/containerd", "/run/lock", "/var/log/pods"]
    for owner in ("containerd", "kubelet"):
        yield ["mkdir", "-p", f"/var/lib/{owner}"]
        yield ["mount", "--bind", f"{folder}/{owner}", f"/var/lib/{owner}"]
    for sysctl in SYSCTLS:
        yield ["mount", "--bind", f"{folder}/show/{Path(sysctl).name}", f"/proc/sys/{sysctl}"]
    yield ["mount", "--bind", f"{folder}/show/meminfo", "/proc/meminfo"]
    yield from _all_but_the_lab_read_only(folder.parent)
    yield ["mount", "--make-rshared", "/"]


def _all_but_the_lab_read_only(lab: Path) -> Iterator[list[str]]:
    """The machine's own files; pods have volumes in the lab's folder."""
    yield ["mount", "--bind", str(lab), str(lab)]
    yield ["mount", "-o", "remount,bind,ro", "/"]


def _cgroup_mounts(cgroups: Cgroups) -> Iterator[list[str]]:
    if cgroups.version == 2:
        yield ["mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup"]
        return
    yield ["mount", "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup"]
    for hierarchy in cgroups.hierarchies:
        place = f"/sys/fs/cgroup/{hierarchy.name}"
        yield ["mkdir", place]
        yield ["mount", "-t", "cgroup", "-o", hierarchy.options, "cgroup", place]
