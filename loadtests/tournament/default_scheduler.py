"""Where kube-scheduler's default scores put a pod, by requests: for the first placement, and where others evict."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from loadtests.embedded.default_scheduler import choose_among
from loadtests.embedded.scheduling.occupancy import NodeState, Occupancy
from loadtests.tournament.instance import AppModel, NodeModel

Json = dict[str, Any]


class Landing:
    """The embedded cluster's imitation of kube-scheduler, with required anti-affinity and spread over zones on top."""

    def __init__(self, nodes: Sequence[NodeModel], ties: random.Random) -> None:
        self._ties = ties
        self._zones = {node.name: node.zone for node in nodes}
        self._manifests = {node.name: _node(node) for node in nodes}
        self._occupancy = Occupancy(self._manifests.values(), ())
        self._here: dict[str, Counter[str]] = {}

    def reset(self, placed: Iterable[tuple[AppModel, str]], unusable: frozenset[str]) -> None:
        """What is on the nodes now; nothing goes to the unusable ones."""
        manifests = (manifest for name, manifest in self._manifests.items() if name not in unusable)
        self._occupancy = Occupancy(manifests, ())
        self._here = {}
        for app, node in placed:
            self._here.setdefault(app.name, Counter())[node] += 1
            if node not in unusable:
                self._occupancy.place(_pod(app, node), node)

    def place(self, app: AppModel) -> str | None:
        """The chosen node, whose room is taken; None when no node fits."""
        pod = _pod(app)
        chosen = choose_among(pod, self._allowed(app), self._ties)
        if chosen is not None:
            self._here.setdefault(app.name, Counter())[chosen] += 1
            self._occupancy.place(_pod(app, chosen), chosen)
        return chosen

    def _allowed(self, app: AppModel) -> list[NodeState]:
        here = self._here.get(app.name, Counter[str]())
        states = list(self._occupancy.nodes.values())
        if app.apart:
            states = [state for state in states if not here[state.name]]
        if app.spread_zones:
            counts = Counter(dict.fromkeys(self._zones.values(), 0))
            for name, number in here.items():
                counts[self._zones[name]] += number
            least = min(counts.values())
            states = [state for state in states if counts[self._zones[state.name]] - least < 1]
        return states


def _node(node: NodeModel) -> Json:
    taints = [{"key": each.key, "value": each.value, "effect": each.effect} for each in node.taints]
    manifest = node.spec.manifest()
    return {**manifest, "spec": {"taints": taints}, "status": {"allocatable": node.spec.resources()}}


def _pod(app: AppModel, node: str = "") -> Json:
    requests = {"cpu": f"{round(app.cpu_request * 1000)}m", "memory": str(int(app.memory_request))}
    owner = {"kind": "ReplicaSet", "name": app.name, "uid": app.name, "controller": True}
    spec: Json = {
        "containers": [{"name": "web", "resources": {"requests": requests}}],
        "nodeSelector": dict(app.rules.node_selector),
        "tolerations": [
            {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
            for each in app.rules.tolerations
        ],
    }
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": app.name, "namespace": "shop", "ownerReferences": [owner]}, "spec": spec}
