"""Effective requests of a pod, as computed by kube-scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw

from reactor.cluster.decoding.common import Memo, WrongField, decode_amounts, inside, is_given
from reactor.cluster.decoding.pod_json import WireContainer, WirePodSpec, WireResources

Amounts = Mapping[str, float]

_NO_AMOUNTS: Amounts = {}
_RESOURCES = msgspec.json.Decoder(WireResources)
_POD_LEVEL = ("cpu", "memory", "hugepages-")
"""Resources that a pod may request for all its containers together."""


def _decode_requests(text: bytes) -> Amounts:
    """Where only a limit is given, it is the request, too: the API server's default."""
    resources = _RESOURCES.decode(text)
    return {**_amounts(resources.limits, "limits"), **_amounts(resources.requests, "requests")}


def _decode_pod_level(text: bytes) -> Amounts:
    given = _amounts(_RESOURCES.decode(text).requests, "requests")
    return {name: amount for name, amount in given.items() if name.startswith(_POD_LEVEL)}


def _amounts(raw: Raw, path: str) -> Amounts:
    try:
        return decode_amounts(bytes(raw) or b"null")
    except (WrongField, msgspec.ValidationError) as error:
        raise inside(path, error) from error


class RequestsDecoder:
    def __init__(self) -> None:
        self._containers = Memo(_decode_requests)
        self._pod_level = Memo(_decode_pod_level)
        self._overheads = Memo(decode_amounts)
        self._shared: dict[tuple[bytes, ...], Amounts] = {}

    def effective(self, spec: WirePodSpec) -> Amounts:
        """Pods with equal resources share one mapping."""
        key = _resources_key(spec)
        known = self._shared.get(key)
        if known is None:
            if len(self._shared) >= 16384:
                self._shared.clear()
            known = self._shared[key] = self._total(spec)
        return known

    def _total(self, spec: WirePodSpec) -> Amounts:
        running = self._sum(spec.containers, "spec.containers")
        sidecars: Amounts = _NO_AMOUNTS
        starting: Amounts = _NO_AMOUNTS
        for index, container in enumerate(spec.init_containers or ()):
            own = self._of(container.resources, f"spec.initContainers[{index}].resources")
            if container.sidecar:
                running = _added(running, own)
                sidecars = _added(sidecars, own)
                starting = _largest(starting, sidecars)
            else:
                starting = _largest(starting, _added(own, sidecars))
        needed = _largest(running, starting)
        if is_given(spec.resources):
            needed = {**needed, **self._pod_level.of(spec.resources, "spec.resources")}
        if is_given(spec.overhead):
            needed = _added(needed, self._overheads.of(spec.overhead, "spec.overhead"))
        return needed

    def _sum(self, containers: Sequence[WireContainer], path: str) -> Amounts:
        total: Amounts = _NO_AMOUNTS
        for index, container in enumerate(containers):
            total = _added(total, self._of(container.resources, f"{path}[{index}].resources"))
        return total

    def _of(self, resources: Raw, path: str) -> Amounts:
        return self._containers.of(resources, path) if is_given(resources) else _NO_AMOUNTS


def _resources_key(spec: WirePodSpec) -> tuple[bytes, ...]:
    """All that the sum depends on, with separators between the lists."""
    parts = [bytes(spec.overhead), bytes(spec.resources)]
    parts += [bytes(container.resources) for container in spec.containers]
    for container in spec.init_containers or ():
        parts += (b"sidecar" if container.sidecar else b"init", bytes(container.resources))
    return tuple(parts)


def _added(one: Amounts, other: Amounts) -> Amounts:
    if not one or not other:
        return one or other
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {**one, **other}}


def _largest(one: Amounts, other: Amounts) -> Amounts:
    if not one or not other:
        return one or other
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in {**one, **other}}
