"""What pods request, and what is on each node: updated with every placement, so that a batch of pods is cheap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from loadtests.embedded.objects import controller_of, is_deleting, is_finished, name_of, status_of
from loadtests.embedded.resources import Json
from reactor.cluster.decoding.quantity import parse_nanos, whole_amount

Amounts = dict[str, float]
"""In cores and bytes, rounded up to whole milli-cores and bytes."""

_Nanos = dict[str, int]

_UNSTATED: Mapping[str, int] = {"cpu": parse_nanos("100m"), "memory": parse_nanos("200Mi")}
"""What scoring assumes of a container that states nothing, so that such pods do not all land on one node."""


def pod_requests(pod: Json, *, assume_unstated: bool = False) -> Amounts:
    """Containers and sidecars together, or the largest init step if that is more, plus overhead."""
    spec = pod["spec"]
    running: _Nanos = {}
    for container in spec.get("containers") or ():
        _add(running, _container(container, assume_unstated))
    sidecars: _Nanos = {}
    largest: _Nanos = {}
    for container in spec.get("initContainers") or ():
        wanted = _container(container, assume_unstated)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, wanted)
            step = dict(sidecars)
        else:
            step = dict(sidecars)
            _add(step, wanted)
        largest = {name: max(largest.get(name, 0), step.get(name, 0)) for name in {*largest, *step}}
    _add(running, sidecars)
    total = {name: max(running.get(name, 0), largest.get(name, 0)) for name in {*running, *largest}}
    _add(total, _parsed(spec.get("overhead")))
    return {name: whole_amount(name, amount) for name, amount in total.items()}


def _container(container: Json, assume_unstated: bool) -> _Nanos:
    stated = _parsed((container.get("resources") or {}).get("requests"))
    return {**_UNSTATED, **stated} if assume_unstated else stated


def _parsed(amounts: Json | None) -> _Nanos:
    return {name: parse_nanos(value) for name, value in (amounts or {}).items()}


def _add(total: _Nanos, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


class NodeState:
    """One node with the requests of its pods; `assumed` counts a default for what is not stated."""

    __slots__ = ("allocatable", "assumed", "by_controller", "name", "node", "pods", "requested")

    def __init__(self, node: Json) -> None:
        self.node = node
        self.name = name_of(node)
        stated = status_of(node).get("allocatable") or status_of(node).get("capacity") or {}
        self.allocatable: Amounts = {kind: whole_amount(kind, parse_nanos(value)) for kind, value in stated.items()}
        self.requested: Amounts = {}
        self.assumed: Amounts = {}
        self.pods: list[Json] = []
        self.by_controller: Counter[str] = Counter()
        """How many pods of each controller are here to stay."""

    def add(self, pod: Json) -> None:
        self.pods.append(pod)
        controller = controller_of(pod)
        if controller is not None and not is_deleting(pod):
            self.by_controller[controller["uid"]] += 1
        for total, wanted in (
            (self.requested, pod_requests(pod)),
            (self.assumed, pod_requests(pod, assume_unstated=True)),
        ):
            for kind, amount in wanted.items():
                total[kind] = total.get(kind, 0.0) + amount


class Occupancy:
    def __init__(self, nodes: Iterable[Json], pods: Iterable[Json]) -> None:
        self.nodes = {state.name: state for state in sorted(map(NodeState, nodes), key=lambda state: state.name)}
        for pod in pods:
            state = self.nodes.get(pod["spec"].get("nodeName", ""))
            if state is not None and not is_finished(pod):
                state.add(pod)

    def place(self, pod: Json, node: str) -> None:
        self.nodes[node].add(pod)
