"""What a node is told: specs, addresses, configuration, mounts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from loadtests.nodes.cgroups import Cgroups, Hierarchy
from loadtests.nodes.network import SLOTS, Addresses
from loadtests.nodes.node_files import KubeletPace, NodePlace, mount_script, write_node_files
from loadtests.nodes.spec import LabNodeSpec, check_nodes, parse_nodes
from reactor.errors import InputError


def test_nodes_are_written_as_millicores_and_mebibytes() -> None:
    first, second = parse_nodes(["600m", "250m/2048Mi"])
    assert (first.name, first.millicores, first.memory_mib) == ("node1", 600, 1024)
    assert (second.name, second.millicores, second.memory_mib) == ("node2", 250, 2048)


@pytest.mark.parametrize("text", ["", "0.6", "600", "5m", "600m/1Gi", "600m/-1Mi"])
def test_what_is_no_node_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="600m/1024Mi"):
        parse_nodes([text])


@pytest.mark.parametrize(("text", "least"), [("5m", "at least 20m"), ("600m/10Mi", "at least 384Mi")])
def test_a_node_that_is_too_small_is_told_the_minimum(text: str, least: str) -> None:
    with pytest.raises(InputError, match=least):
        parse_nodes([text])
    assert parse_nodes(["20m/384Mi"])


def test_impossible_nodes_are_refused() -> None:
    for spec in (LabNodeSpec("Node", 100), LabNodeSpec("n", 100, 300), LabNodeSpec("n", 10_000_000)):
        with pytest.raises(InputError):
            check_nodes([spec])
    with pytest.raises(InputError, match="same name"):
        check_nodes([LabNodeSpec("n", 100), LabNodeSpec("n", 100)])


def test_labs_do_not_share_addresses_or_names() -> None:
    labs = [Addresses(slot) for slot in range(SLOTS)]
    assert len({lab.everything for lab in labs}) == SLOTS
    assert len({lab.bridge for lab in labs}) == SLOTS
    assert all(len(lab.link(200)) <= 15 for lab in labs)
    for link in ("rematch1", "rm1n1", "rm1n201"):
        assert [lab.slot for lab in labs if lab.owns(link)] == [1]
    assert not any(lab.owns(link) for lab in labs for link in ("eth0", "rm1", "rm1n", "rm1n1x", "rematch"))
    assert labs[3].api_service.startswith(labs[3].services.removesuffix("0/24"))


def place(folder: Path) -> NodePlace:
    return NodePlace(folder, "10.200.0.11", "10.200.1.0/24", "10.200.255.10")


def test_a_kubelet_keeps_for_itself_what_its_pods_may_not_use(tmp_path: Path) -> None:
    spec = LabNodeSpec("node1", 600, 1024, eviction_mib=100, taint="lab/x=y:NoSchedule")
    write_node_files(place(tmp_path), spec, KubeletPace(lease=8), Path("/usr/lib/cni"))
    config = yaml.safe_load((tmp_path / "kubelet.yaml").read_text())
    assert config["kubeReserved"]["cpu"] == f"{1000 * (os.cpu_count() or 1) - 600}m"
    assert config["evictionHard"]["memory.available"] == "100Mi"
    assert config["registerWithTaints"] == [{"key": "lab/x", "value": "y", "effect": "NoSchedule"}]
    assert config["nodeLeaseDurationSeconds"] == 8
    assert config["enableSystemLogHandler"] is False
    assert "MemTotal:       1048576 kB" in (tmp_path / "show" / "meminfo").read_text()
    network = json.loads((tmp_path / "etc-upper/cni/net.d/10-lab.conflist").read_text())
    assert network["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.200.1.0/24"}]]


def test_a_node_writes_only_into_the_lab(tmp_path: Path) -> None:
    folder = tmp_path / "node1"
    script = mount_script(folder, "node1", Cgroups(2, (Hierarchy(Path("/sys/fs/cgroup"), ""),))).splitlines()
    closing = script.index("mount -o remount,bind,ro /")
    assert f"mount --bind {tmp_path} {tmp_path}" in script[:closing]
    assert not any(line.startswith("mkdir") or "overlay" in line for line in script[closing:])
    write_node_files(place(folder), LabNodeSpec("node1", 100), KubeletPace(), Path("/usr/lib/cni"))
    config = yaml.safe_load((folder / "kubelet.yaml").read_text())
    assert config["volumePluginDir"].startswith("/var/lib/kubelet/")
    assert 'path = "/var/lib/containerd/opt"' in (folder / "containerd.toml").read_text()


def test_a_node_sees_its_own_control_groups_and_files(tmp_path: Path) -> None:
    first = Cgroups(
        1, (Hierarchy(Path("/sys/fs/cgroup/cpu"), "cpu"), Hierarchy(Path("/sys/fs/cgroup/memory"), "memory"))
    )
    script = mount_script(tmp_path, "node1", first).splitlines()
    assert script[0] == "set -e"
    assert "mount -t cgroup -o memory cgroup /sys/fs/cgroup/memory" in script
    assert script.index("mount -t sysfs sysfs /sys") < script.index("mount -t tmpfs tmpfs /sys/fs/cgroup")
    second = Cgroups(2, (Hierarchy(Path("/sys/fs/cgroup"), ""),))
    assert "mount -t cgroup2 cgroup2 /sys/fs/cgroup" in mount_script(tmp_path, "node1", second).splitlines()
