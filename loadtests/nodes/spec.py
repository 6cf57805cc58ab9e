"""The nodes of a lab: CPU and memory that their pods may use, and how a node's capacity is set."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from loadtests.workloads.api import LabApi
from reactor.errors import InputError, RematchError

SYSTEM_MEMORY_MIB = 256
"""Kept for kubelet and containerd, which live in the node's memory but not in its pods' share of the CPU."""

SYSTEM_MILLICORES = 200
"""For kubelet and containerd, outside of the pods' share: capacity beyond allocatable, as on other nodes."""

MINIMUM_MILLICORES = 20
_POD_MEMORY_MIB = 64


_GROUP = "/apis/admissionregistration.k8s.io/v1"
_NAME = {"name": "lab-capacity"}
_RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["nodes", "nodes/status"],
}
_LABELLED = 'has(object.metadata.labels) && "lab/cpu" in object.metadata.labels'
_TELLS = 'has(object.status) && has(object.status.capacity) && "cpu" in object.status.capacity'
_PATCH = '[JSONPatch{op: "replace", path: "/status/capacity/cpu", value: object.metadata.labels["lab/cpu"]}]'


@dataclass(frozen=True, slots=True)
class LabNodeSpec:
    name: str
    millicores: int
    memory_mib: int = 1024
    """Of the node as a whole."""
    eviction_mib: int = 64
    """With less than this free the kubelet reports memory pressure and evicts."""
    taint: str = ""
    """key=value:effect, set when the kubelet registers the node."""
    clock_ahead: float = 0.0
    """Seconds by which the timestamps of its Events are ahead of the others' (or behind, below 0)."""

    @property
    def minimum_memory_mib(self) -> int:
        """With less there is nothing for pods."""
        return SYSTEM_MEMORY_MIB + self.eviction_mib + _POD_MEMORY_MIB


def parse_nodes(texts: Iterable[str]) -> tuple[LabNodeSpec, ...]:
    """`600m/1024Mi`, one per node; they are called node1, node2, ..."""
    specs = []
    for number, text in enumerate(texts, start=1):
        match = re.fullmatch(r"(\d+)m(?:/(\d+)Mi)?", text)
        if match is None or int(match[1]) < MINIMUM_MILLICORES:
            raise InputError(
                f"--node {text}: write MILLICORESm or MILLICORESm/MEBIBYTESMi, e.g. 600m/1024Mi;"
                f" at least {MINIMUM_MILLICORES}m"
            )
        specs.append(LabNodeSpec(f"node{number}", int(match[1]), int(match[2] or 1024)))
    check_nodes(specs)
    return tuple(specs)


def check_nodes(specs: Iterable[LabNodeSpec]) -> None:
    specs = tuple(specs)
    if not 1 <= len(specs) <= 200:
        raise InputError(f"{len(specs)} nodes: a lab has 1 to 200")
    if len({spec.name for spec in specs}) < len(specs):
        raise InputError("two nodes have the same name")
    for spec in specs:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,20}", spec.name):
            raise InputError(f"node {spec.name}: at most 21 lowercase letters, digits and dashes")
        if spec.memory_mib < spec.minimum_memory_mib:
            least = f"it needs at least {spec.minimum_memory_mib}Mi"
            raise InputError(f"node {spec.name}: {spec.memory_mib}Mi leave nothing for pods; {least}")
        if spec.millicores > 1000 * (os.cpu_count() or 1):
            raise InputError(f"node {spec.name}: this machine has fewer cores than {spec.millicores}m")


class LabError(RematchError):
    """One line that says what and, where the user can do something, what to do."""


async def set_capacities(api: LabApi) -> None:
    policy = {
        "metadata": _NAME,
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [_RULE]},
            "matchConditions": [
                {"name": "labelled", "expression": _LABELLED},
                {"name": "tells", "expression": _TELLS},
            ],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _PATCH}}],
        },
    }
    await api.create(f"{_GROUP}/mutatingadmissionpolicies", policy)
    binding = {"metadata": _NAME, "spec": {"policyName": _NAME["name"]}}
    await api.create(f"{_GROUP}/mutatingadmissionpolicybindings", binding)
