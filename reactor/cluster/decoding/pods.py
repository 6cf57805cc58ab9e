"""Pods."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from reactor.cluster.decoding.common import Memo, MetaDecoder, created, is_given, seconds, uid_of
from reactor.cluster.decoding.constraints import ConstraintsDecoder
from reactor.cluster.decoding.pod_json import (
    WireCondition,
    WireContainer,
    WireContainerStatus,
    WirePod,
    WirePodSpec,
    WirePodStatus,
    WireVolume,
)
from reactor.cluster.decoding.requests import RequestsDecoder
from reactor.cluster.records import Container, Pod, Probe

_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
_GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
MIRROR = "kubernetes.io/config.mirror"

_POD = msgspec.json.Decoder(WirePod)
_NO_STATUS = WirePodStatus()


class _Probe(Struct, rename="camel", gc=False):
    period_seconds: float | None = None
    failure_threshold: int | None = None
    initial_delay_seconds: float | None = None


_PROBE = msgspec.json.Decoder(_Probe)


class _Check(Struct, rename="camel", gc=False):
    """What a probe asks, without how often and how patiently."""

    http_get: dict[str, Any] | None = None
    tcp_socket: dict[str, Any] | None = None
    grpc: dict[str, Any] | None = None
    exec: dict[str, Any] | None = None


_CHECKS = msgspec.json.Decoder(tuple[_Check, _Check])
_NOT_BY_PROBE = frozenset({"OOMKilled", "ContainerCannotRun", "StartError", "ContainerStatusUnknown"})
"""Reasons why a container ended that are not those of a container that was killed for its liveness probe."""


def _decode_probe(text: bytes) -> Probe:
    """Zero means "not given", as for the API server."""
    found = _PROBE.decode(text)
    return Probe(found.period_seconds or 10.0, found.failure_threshold or 3, found.initial_delay_seconds or 0.0)


def _same_check(text: bytes) -> bool:
    """Whether two probes, as the JSON of both in a list, ask the same."""
    first, second = _CHECKS.decode(text)
    return first == second


class PodDecoder:
    """Shares equal parts of pods, so use one for all pods of a cluster."""

    def __init__(self, metas: MetaDecoder) -> None:
        self._metas = metas
        self._requests = RequestsDecoder()
        self._constraints = ConstraintsDecoder()
        self._probes = Memo(_decode_probe)
        self._same_checks = Memo(_same_check)
        self._tuples: dict[tuple[str, ...], tuple[str, ...]] = {}

    def decode(self, text: bytes | Raw) -> Pod:
        wire = _POD.decode(text)
        meta, spec, status = wire.metadata, wire.spec, wire.status or _NO_STATUS
        annotations, labels = self._metas.annotations(meta), self._metas.labels(meta)
        constraints = self._constraints.rules(spec, labels)
        ephemeral_pvcs = _ephemeral_pvcs(spec, meta.name)
        ready = _condition(status, "Ready")
        is_ready = ready is not None and ready.status == "True"
        scheduled = _condition(status, "PodScheduled")
        requests = self._requests.effective(spec, status)
        nominated = status.nominated_node_name
        return Pod(
            uid=uid_of(meta),
            namespace=sys.intern(meta.namespace),
            name=meta.name,
            resource_version=meta.resource_version,
            labels=labels,
            annotations=annotations,
            created=created(meta),
            scheduler_name=sys.intern(spec.scheduler_name or "default-scheduler"),
            node=sys.intern(spec.node_name) if spec.node_name else None,
            nominated_node=sys.intern(nominated) if nominated and not spec.node_name else None,
            owner=self._metas.owner(meta),
            phase=sys.intern(status.phase or "Pending"),
            ready=is_ready and meta.deletion_timestamp is None,
            deleting=seconds(meta.deletion_timestamp),
            priority=spec.priority or 0,
            priority_class=sys.intern(spec.priority_class_name or ""),
            requests=requests.here,
            infeasible_resize=requests.infeasible_resize,
            rules=constraints.rules,
            gates=tuple(gate.name for gate in spec.scheduling_gates or ()),
            unsupported=self._shared((*_unsupported(spec), *_named(constraints.problem))),
            pvcs=(*_pvcs(spec), *ephemeral_pvcs),
            ephemeral_pvcs=ephemeral_pvcs,
            local_data=self._shared(_local_data(spec)),
            containers=tuple(self._containers(spec, status)),
            scheduled=_since(scheduled),
            started=seconds(status.start_time),
            ready_since=_since(ready),
            mirror=MIRROR in annotations,
            group=_group(spec, labels, annotations),
            host_network=bool(spec.host_network),
            readiness_probe=any(is_given(each.readiness_probe) for each in spec.containers),
            pre_stop=all(each.lifecycle is not None and is_given(each.lifecycle.pre_stop) for each in spec.containers),
        )

    def _containers(self, spec: WirePodSpec, status: WirePodStatus) -> Iterator[Container]:
        running = _by_name(status.container_statuses)
        for index, container in enumerate(spec.containers):
            yield self._container(container, running.get(container.name), f"spec.containers[{index}]")
        if spec.init_containers:
            running = _by_name(status.init_container_statuses)
            for index, container in enumerate(spec.init_containers):
                if container.sidecar:
                    yield self._container(container, running.get(container.name), f"spec.initContainers[{index}]")

    def _container(self, container: WireContainer, status: WireContainerStatus | None, path: str) -> Container:
        probe = container.liveness_probe
        liveness = self._probes.of(probe, f"{path}.livenessProbe") if is_given(probe) else None
        name = sys.intern(container.name)
        if status is None:
            return Container(name, liveness)
        running = status.state.running if status.state and status.started is not False else None
        started = seconds(running.started_at) if running else None
        cpu, memory = self._requests.limits(container, path)
        if liveness is None:
            return Container(name, None, status.restart_count, started, cpu_limit=cpu, memory_limit=memory)
        unready = started is not None and not status.ready and self._checks_twice(container, path)
        return Container(name, liveness, status.restart_count, started, _terminated(status), unready, cpu, memory)

    def _checks_twice(self, container: WireContainer, path: str) -> bool:
        """Whether its readiness probe asks the same as its liveness probe."""
        if not is_given(container.readiness_probe):
            return False
        both = b"[%b,%b]" % (bytes(container.liveness_probe), bytes(container.readiness_probe))
        return self._same_checks.of(Raw(both), f"{path}.readinessProbe")

    def _shared(self, names: tuple[str, ...]) -> tuple[str, ...]:
        if not names:
            return ()
        if len(self._tuples) >= 16384:
            self._tuples.clear()
        return self._tuples.setdefault(names, names)


def _terminated(status: WireContainerStatus) -> float | None:
    for state in (status.state, status.last_state):
        ended = state.terminated if state is not None else None
        if ended is not None and ended.reason not in _NOT_BY_PROBE:
            return seconds(ended.finished_at)
    return None


def _by_name(statuses: list[WireContainerStatus] | None) -> dict[str, WireContainerStatus]:
    return {status.name: status for status in statuses or ()}


def _condition(status: WirePodStatus, name: str) -> WireCondition | None:
    for condition in status.conditions or ():
        if condition.type == name:
            return condition
    return None


def _since(condition: WireCondition | None) -> float | None:
    """When it became True; None while it is not."""
    if condition is None or condition.status != "True":
        return None
    return seconds(condition.last_transition_time)


def _unsupported(spec: WirePodSpec) -> Iterator[str]:
    """Constraints that are never supported, whatever other objects exist."""
    if any(_is_unsupported(volume) for volume in spec.volumes or ()):
        yield "volumes"
    if spec.resource_claims:
        yield "resourceClaims"


def _group(spec: WirePodSpec, labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Kubernetes' own field, else the label of the coscheduling plugin, else Volcano's annotation."""
    if spec.scheduling_group is not None:
        return sys.intern(spec.scheduling_group.pod_group_name)
    if spec.workload_ref is not None:
        return sys.intern(f"{spec.workload_ref.name}/{spec.workload_ref.pod_group}")
    return labels.get(_GROUP_LABEL) or annotations.get(_GROUP_ANNOTATION, "")


def _named(problem: str) -> tuple[str, ...]:
    return (f"constraints ({problem})",) if problem else ()


def _pvcs(spec: WirePodSpec) -> tuple[str, ...]:
    claims = (volume.persistent_volume_claim for volume in spec.volumes or ())
    return tuple(claim.claim_name for claim in claims if claim)


def _ephemeral_pvcs(spec: WirePodSpec, pod: str) -> tuple[str, ...]:
    """The ephemeral volume controller names them so."""
    return tuple(f"{pod}-{volume.name}" for volume in spec.volumes or () if is_given(volume.ephemeral))


def _local_data(spec: WirePodSpec) -> tuple[str, ...]:
    """Volumes whose data stays on the node."""
    found = [f"emptyDir:{volume.name}" for volume in spec.volumes or () if is_given(volume.empty_dir)]
    found += [f"hostPath:{volume.name}" for volume in spec.volumes or () if is_given(volume.host_path)]
    return tuple(found)


def _is_unsupported(volume: WireVolume) -> bool:
    """A source that may restrict the pod to some nodes in a way that is not decoded."""
    known = (
        volume.empty_dir,
        volume.host_path,
        volume.config_map,
        volume.secret,
        volume.projected,
        volume.downward_api,
        volume.image,
        volume.nfs,
        volume.csi,
        volume.ephemeral,
    )
    return volume.persistent_volume_claim is None and not any(map(is_given, known))
