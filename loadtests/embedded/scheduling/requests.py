"""What a pod asks for, as kube-scheduler counts it."""

from __future__ import annotations

from collections.abc import Mapping

from loadtests.embedded.quantities import parse_quantity
from loadtests.embedded.resources import Json

Amounts = dict[str, float]

_UNSTATED: Mapping[str, float] = {"cpu": 0.1, "memory": 200 * 2**20}
"""What scoring assumes of a container that states nothing, so that such pods do not all land on one node."""


def pod_requests(pod: Json, *, assume_unstated: bool = False) -> Amounts:
    """Containers and sidecars together, or the largest init step if that is more, plus overhead."""
    spec = pod["spec"]
    running: Amounts = {}
    for container in spec.get("containers") or ():
        _add(running, _container(container, assume_unstated))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in spec.get("initContainers") or ():
        wanted = _container(container, assume_unstated)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, wanted)
            step = dict(sidecars)
        else:
            step = dict(sidecars)
            _add(step, wanted)
        largest = {name: max(largest.get(name, 0.0), step.get(name, 0.0)) for name in {*largest, *step}}
    _add(running, sidecars)
    total = {name: max(running.get(name, 0.0), largest.get(name, 0.0)) for name in {*running, *largest}}
    _add(total, _parsed(spec.get("overhead")))
    return total


def _container(container: Json, assume_unstated: bool) -> Amounts:
    stated = _parsed((container.get("resources") or {}).get("requests"))
    return {**_UNSTATED, **stated} if assume_unstated else stated


def _parsed(amounts: Json | None) -> Amounts:
    return {name: parse_quantity(value) for name, value in (amounts or {}).items()}


def _add(total: Amounts, more: Mapping[str, float]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0.0) + amount
