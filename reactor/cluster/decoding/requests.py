"""Effective requests of a pod, as computed by kube-scheduler. Exact sums, rounded up at the end."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

import msgspec
from msgspec import Raw

from reactor.cluster.decoding.common import Memo, WrongField, decode_nanos, inside, is_given, whole_amounts
from reactor.cluster.decoding.pod_json import (
    WireContainer,
    WirePodSpec,
    WirePodStatus,
    WireResources,
)

Nanos = Mapping[str, int]

_NO_AMOUNTS: Nanos = {}
_NO_STATUS = WirePodStatus()
_RESOURCES = msgspec.json.Decoder(WireResources)
_HUGE_PAGES = "hugepages-"
_POD_LEVEL = ("cpu", "memory", _HUGE_PAGES)
"""Resources that a pod may request for all its containers together."""


class Requests(NamedTuple):
    here: Mapping[str, float]
    """On the node that the pod has."""
    infeasible_resize: Mapping[str, float] | None
    """With a resize that this node can never make; None without one."""


def _decode_requests(text: bytes) -> Nanos:
    """Where only a limit is given, it is the request, too: the API server's default."""
    resources = _RESOURCES.decode(text)
    return {**_nanos(resources.limits, "limits"), **_nanos(resources.requests, "requests")}


def _decode_stated_requests(text: bytes) -> Nanos:
    return _nanos(_RESOURCES.decode(text).requests, "requests")


def _decode_limits(text: bytes) -> Nanos:
    return _nanos(_RESOURCES.decode(text).limits, "limits")


def _nanos(raw: Raw, path: str) -> Nanos:
    try:
        return decode_nanos(bytes(raw) or b"null")
    except (WrongField, msgspec.ValidationError) as error:
        raise inside(path, error) from error


class RequestsDecoder:
    def __init__(self) -> None:
        self._containers = Memo(_decode_requests)
        self._stated = Memo(_decode_stated_requests)
        self._limits = Memo(_decode_limits)
        self._amounts = Memo(decode_nanos)
        self._shared: dict[tuple[bytes | str | bool, ...], Requests] = {}

    def effective(self, spec: WirePodSpec, status: WirePodStatus = _NO_STATUS) -> Requests:
        """Pods with equal resources share one value."""
        key = _resources_key(spec, status)
        known = self._shared.get(key)
        if known is None:
            if len(self._shared) >= 16384:
                self._shared.clear()
            known = self._shared[key] = self._requests(spec, _ActualSizes(status))
        return known

    def limits(self, container: WireContainer, path: str) -> tuple[float | None, float | None]:
        """Cores and bytes; None without a limit."""
        if not is_given(container.resources):
            return None, None
        found = self._limits.of(container.resources, f"{path}.resources")
        cpu, memory = found.get("cpu"), found.get("memory")
        return None if cpu is None else cpu / 1e9, None if memory is None else memory / 1e9

    def _requests(self, spec: WirePodSpec, sizes: _ActualSizes) -> Requests:
        here = whole_amounts(self._total(spec, sizes, count_spec=not sizes.infeasible))
        resized = whole_amounts(self._total(spec, sizes, count_spec=True)) if sizes.infeasible else None
        return Requests(here, resized)

    def _total(self, spec: WirePodSpec, sizes: _ActualSizes, *, count_spec: bool) -> Nanos:
        needed = self._of_containers(spec, sizes, count_spec)
        if is_given(spec.resources):
            needed = {**needed, **self._pod_level(spec, sizes, count_spec)}
        if is_given(spec.overhead):
            needed = _added(needed, self._amounts.of(spec.overhead, "spec.overhead"))
        return needed

    def _of_containers(self, spec: WirePodSpec, sizes: _ActualSizes, count_spec: bool) -> Nanos:
        running: Nanos = _NO_AMOUNTS
        for index, container in enumerate(spec.containers):
            running = _added(running, self._of(container, f"spec.containers[{index}]", sizes, count_spec))
        sidecars: Nanos = _NO_AMOUNTS
        starting: Nanos = _NO_AMOUNTS
        for index, container in enumerate(spec.init_containers or ()):
            path = f"spec.initContainers[{index}]"
            if container.sidecar:
                own = self._of(container, path, sizes, count_spec)
                running = _added(running, own)
                sidecars = _added(sidecars, own)
                starting = _largest(starting, sidecars)
            else:
                starting = _largest(starting, _added(self._in_spec(container, path), sidecars))
        return _largest(running, starting)

    def _of(self, container: WireContainer, path: str, sizes: _ActualSizes, count_spec: bool) -> Nanos:
        """The largest of what the container asks for, has and was promised."""
        stated = self._in_spec(container, path)
        status = sizes.containers.get(container.name)
        if status is None:
            return stated
        actual = self._actual(status.resources, status.allocated_resources, f"status of container {container.name}")
        return _largest(stated, actual) if count_spec else actual

    def _in_spec(self, container: WireContainer, path: str) -> Nanos:
        if not is_given(container.resources):
            return _NO_AMOUNTS
        return self._containers.of(container.resources, f"{path}.resources")

    def _pod_level(self, spec: WirePodSpec, sizes: _ActualSizes, count_spec: bool) -> Nanos:
        stated = self._pod_level_in_spec(spec)
        if not is_given(sizes.pod):
            return stated
        actual = self._actual(sizes.pod, sizes.pod_allocated, "status")
        counted = _largest(stated, actual) if count_spec else actual
        return {name: counted.get(name, 0) for name in stated}

    def _pod_level_in_spec(self, spec: WirePodSpec) -> Nanos:
        """With the API server's defaults: where the pod has a limit, its request of a resource is what its containers
        request, and without any the limit. The huge pages of containers are a limit, too."""
        requests = self._stated.of(spec.resources, "spec.resources")
        limits = self._limits.of(spec.resources, "spec.resources")
        containers = self._of_containers(spec, _ActualSizes(_NO_STATUS), count_spec=True)
        huge_pages = {name: amount for name, amount in containers.items() if name.startswith(_HUGE_PAGES)}
        if requests or limits:
            limits = {**huge_pages, **limits}
        if limits:
            requests = {**limits, **_without(containers, huge_pages), **requests}
        return {name: amount for name, amount in requests.items() if name.startswith(_POD_LEVEL)}

    def _actual(self, resources: Raw, allocated: Raw, path: str) -> Nanos:
        promised = self._amounts.of(allocated, f"{path}.allocatedResources")
        return _largest(self._stated.of(resources, f"{path}.resources"), promised)


class _ActualSizes:
    """What the kubelet says of a pod's resources."""

    def __init__(self, status: WirePodStatus) -> None:
        statuses = chain(status.container_statuses or (), status.init_container_statuses or ())
        self.containers = {each.name: each for each in statuses if is_given(each.resources)}
        self.pod, self.pod_allocated = status.resources, status.allocated_resources
        self.infeasible = _infeasible(status)


def _infeasible(status: WirePodStatus) -> bool:
    """Whether the node can never make the resize that the spec asks for."""
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _resources_key(spec: WirePodSpec, status: WirePodStatus) -> tuple[bytes | str | bool, ...]:
    """All that the sum depends on. Names and roles separate the lists."""
    parts: list[bytes | str | bool] = [bytes(spec.overhead), bytes(spec.resources), _infeasible(status)]
    for container in spec.containers:
        parts += (container.name, bytes(container.resources))
    for container in spec.init_containers or ():
        parts += (container.sidecar, container.name, bytes(container.resources))
    for statuses in (status.container_statuses, status.init_container_statuses):
        for each in statuses or ():
            parts += (each.name, bytes(each.resources), bytes(each.allocated_resources))
    parts += (bytes(status.resources), bytes(status.allocated_resources))
    return tuple(parts)


def _without(amounts: Nanos, names: Nanos) -> Nanos:
    return {name: amount for name, amount in amounts.items() if name not in names}


def _added(one: Nanos, other: Nanos) -> Nanos:
    if not one or not other:
        return one or other
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _largest(one: Nanos, other: Nanos) -> Nanos:
    if not one or not other:
        return one or other
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
