"""Control groups of both versions, on folders that look like them."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadtests.nodes.cgroups import Cgroups
from loadtests.nodes.spec import LabError


def version_1(root: Path) -> Cgroups:
    lines = []
    for number, name in enumerate(("cpu,cpuacct", "cpuset", "memory", "systemd")):
        options = "rw,none,name=systemd" if name == "systemd" else f"rw,{name}"
        lines.append(f"{number} 25 0:{number} / {root / name} rw,relatime shared:9 - cgroup cgroup {options}")
        (root / name).mkdir(parents=True)
    lines.append(f"9 25 0:9 / {root / 'unified'} rw - cgroup2 cgroup2 rw")
    for limit, value in (("cpuset.cpus", "0-1"), ("cpuset.mems", "0")):
        (root / "cpuset" / limit).write_text(value)
    return Cgroups.of_this_machine("\n".join(lines))


def version_2(root: Path) -> Cgroups:
    root.mkdir(exist_ok=True)
    (root / "cgroup.controllers").write_text("cpuset cpu io memory pids rdma\n")
    return Cgroups.of_this_machine(f"30 23 0:26 / {root} rw - cgroup2 cgroup2 rw,nsdelegate")


def test_version_1_has_a_group_in_every_hierarchy_and_one_quota_for_the_pods(tmp_path: Path) -> None:
    cgroups = version_1(tmp_path)
    cgroups.make("lab-n1")
    cgroups.divide("lab-n1", 250, 1024)
    assert cgroups.version == 1
    assert [group.parent.name for group in cgroups.groups("lab-n1")] == ["cpu,cpuacct", "cpuset", "memory", "systemd"]
    assert (tmp_path / "cpu,cpuacct/lab-n1/pods/cpu.cfs_quota_us").read_text() == "25000"
    assert (tmp_path / "cpu,cpuacct/lab-n1/cpu.shares").read_text() == "4096"
    assert (tmp_path / "memory/lab-n1/memory.limit_in_bytes").read_text() == str(1 << 30)


def test_version_1_mounts_named_hierarchies_as_the_kernel_wants_them(tmp_path: Path) -> None:
    options = {hierarchy.name: hierarchy.options for hierarchy in version_1(tmp_path).hierarchies}
    assert options["systemd"] == "none,name=systemd"
    assert options["cpu,cpuacct"] == "cpu,cpuacct"


def test_version_2_divides_only_after_the_first_process_has_left_the_root(tmp_path: Path) -> None:
    cgroups = version_2(tmp_path / "cgroup")
    cgroups.make("lab-n1")
    group = tmp_path / "cgroup" / "lab-n1"
    (group / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (group / "cgroup.procs").write_text("4711\n")
    cgroups.divide("lab-n1", 400, 512)
    assert cgroups.version == 2
    assert (group / "sys" / "cgroup.procs").read_text() == "4711"
    assert (group / "cgroup.subtree_control").read_text() == "+cpuset +cpu +io +memory +pids"
    assert (group / "pods" / "cpu.max").read_text() == "40000 100000"
    assert (group / "memory.max").read_text() == str(512 << 20)


def test_members_are_found_in_all_parts(tmp_path: Path) -> None:
    cgroups = version_2(tmp_path / "cgroup")
    cgroups.make("lab-n1")
    for part, pid in (("sys", "11"), ("pods", "12")):
        (tmp_path / "cgroup" / "lab-n1" / part / "cgroup.procs").write_text(f"{pid}\n")
    assert cgroups.members("lab-n1") == {11, 12}
    assert cgroups.members("lab-n2") == set()


def test_a_group_that_is_there_already_is_not_joined(tmp_path: Path) -> None:
    cgroups = version_2(tmp_path / "cgroup")
    (tmp_path / "cgroup" / "lab-n1").mkdir()
    with pytest.raises(LabError, match="lab-n1 is there"):
        cgroups.make("lab-n1")


def test_a_process_that_cannot_be_seen_is_no_reason_to_signal_ourselves(tmp_path: Path) -> None:
    cgroups = version_2(tmp_path / "cgroup")
    cgroups.make("lab-n1")
    (tmp_path / "cgroup" / "lab-n1" / "pods" / "cgroup.procs").write_text("0\n")
    with pytest.raises(LabError, match="pid namespace"):
        cgroups.end("lab-n1")


def test_a_machine_without_control_groups_is_told_what_to_do() -> None:
    with pytest.raises(LabError, match="mount cgroup2"):
        Cgroups.of_this_machine("1 0 8:1 / / rw - ext4 /dev/vda rw")
