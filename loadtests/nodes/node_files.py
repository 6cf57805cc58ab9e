"""The configuration files and mounts of one node: containerd, its network plug-in, the kubelet."""

from __future__ import annotations

import json
import os
import re
import shlex
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from loadtests.images.build import PAUSE_IMAGE
from loadtests.nodes.cgroups import Cgroups
from loadtests.nodes.spec import SYSTEM_MEMORY_MIB, LabNodeSpec

_CONTAINERD = """\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.tracing",
  "io.containerd.tracing.processor.v1.otlp"]
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
disable_apparmor = true
# Without it every sandbox of a nested node fails: it may not lower its own OOM score.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "/etc/cni/net.d"
"""
SYSCTLS = {"vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1"}
"""What a kubelet wants the kernel to be set to; it is shown these values, the machine is left alone."""
READ_ONLY_PORT = 10255
_ETC = "etc-upper"


@dataclass(frozen=True, slots=True)
class NodePlace:
    """Where a node is, in addresses and on disk."""

    folder: Path
    address: str
    pods: str
    service_dns: str

    @property
    def log(self) -> Path:
        return self.folder / "log"


@dataclass(frozen=True, slots=True)
class KubeletPace:
    """How quickly a kubelet looks and tells; the defaults are Kubernetes' own."""

    housekeeping: float = 10.0
    """How often cAdvisor looks at a container."""
    status: float = 10.0
    lease: float = 40.0
    """Renewed at a quarter of it."""
    pressure_transition: float = 300.0


def write_node_files(place: NodePlace, spec: LabNodeSpec, pace: KubeletPace, plugins: Path) -> None:
    folder = place.folder
    for name in ("log", "containerd", "kubelet", "var-upper", "var-work", "etc-work", f"{_ETC}/cni/net.d", "show"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "containerd.toml").write_text(_CONTAINERD.format(pause=PAUSE_IMAGE, plugins=plugins))
    (folder / "kubelet.yaml").write_text(yaml.safe_dump(_kubelet(place, spec, pace)))
    etc = folder / _ETC
    (etc / "machine-id").write_text(uuid.uuid4().hex + "\n")
    (etc / "hostname").write_text(spec.name + "\n")
    (etc / "cni/net.d/10-lab.conflist").write_text(json.dumps(_network(place)))
    for name, value in SYSCTLS.items():
        (folder / "show" / Path(name).name).write_text(value + "\n")
    (folder / "show" / "meminfo").write_text(_meminfo(Path("/proc/meminfo").read_text(), spec.memory_mib))


def _kubelet(place: NodePlace, spec: LabNodeSpec, pace: KubeletPace) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": True,
        "cgroupRoot": "/pods",
        "enforceNodeAllocatable": ["pods"],
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "address": place.address,
        "readOnlyPort": READ_ONLY_PORT,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        # Who may ask for anything need not see the machine's own logs.
        "enableSystemLogHandler": False,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "failSwapOn": False,
        "protectKernelDefaults": True,
        "clusterDNS": [place.service_dns],
        "maxPods": 60,
        "kubeReserved": {
            "cpu": f"{1000 * (os.cpu_count() or 1) - spec.millicores}m",
            "memory": f"{SYSTEM_MEMORY_MIB}Mi",
        },
        "evictionHard": {"memory.available": f"{spec.eviction_mib}Mi", "nodefs.available": "1%"},
        "evictionPressureTransitionPeriod": f"{pace.pressure_transition:g}s",
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "nodeStatusUpdateFrequency": f"{pace.status:g}s",
        "nodeLeaseDurationSeconds": round(pace.lease),
        # A proxy that shifts a node's clock has to read what its kubelet writes.
        "contentType": "application/json",
        **({"registerWithTaints": [_taint(spec.taint)]} if spec.taint else {}),
    }


def _taint(text: str) -> dict[str, str]:
    pair, _, effect = text.partition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _network(place: NodePlace) -> dict[str, Any]:
    addresses = {"type": "host-local", "ranges": [[{"subnet": place.pods}]]}
    bridge = {"type": "bridge", "bridge": "cni0", "isDefaultGateway": True, "ipMasq": False, "hairpinMode": True}
    return {"cniVersion": "0.4.0", "name": "lab", "plugins": [{**bridge, "ipam": addresses}]}


def _meminfo(text: str, memory_mib: int) -> str:
    """The kubelet takes its capacity from here."""
    return re.sub(r"(?m)^MemTotal:.*$", f"MemTotal:       {memory_mib * 1024} kB", text)


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
