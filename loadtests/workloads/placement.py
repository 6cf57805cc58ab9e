"""Where kube-scheduler's default scores put a row of pods on empty nodes, asked of the embedded cluster's scheduler."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from loadtests.embedded.default_scheduler import choose_node
from loadtests.workloads.node_spec import NodeSpec

Json = dict[str, Any]


def default_placement(
    nodes: Iterable[NodeSpec], pod_specs: Iterable[Json], ties: random.Random | None = None
) -> tuple[str, ...]:
    """The node of each pod, placed one after the other; without `ties` the first of equals by name."""
    machines = [{**node.manifest(), "status": {"allocatable": node.resources()}} for node in nodes]
    placed: list[Json] = []
    for number, spec in enumerate(pod_specs):
        pod = {"metadata": {"name": f"pod-{number}", "namespace": "default", "uid": str(number)}, "spec": spec}
        node = choose_node(pod, machines, placed, ties)
        if node is None:
            raise ValueError(f"pod {number} of the scenario fits on no node by its requests")
        placed.append({**pod, "spec": {**spec, "nodeName": node}})
    return tuple(pod["spec"]["nodeName"] for pod in placed)
