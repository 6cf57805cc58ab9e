"""What a pod's spec demands of its node and its neighbours, and the names of demands that we cannot judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from matching.problem import HostPort, Rules, Toleration
from reactor.cluster.decoding.parts import WrongField, decode_strings, given, inside
from reactor.cluster.decoding.pod_affinity import decode_affinity, decode_spreads
from reactor.cluster.decoding.pod_shape import WirePodSpec, WireVolume

V = TypeVar("V")

_MOST_KEPT = 16384


class _Toleration(Struct, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


_TOLERATIONS = msgspec.json.Decoder(list[_Toleration] | None)
_NO_RULES = Rules()


class ConstraintsDecoder:
    """Pods with the same statements share one Rules value, and so do pods whose rules come out equal."""

    def __init__(self) -> None:
        self._stated: dict[tuple[object, ...], Rules] = {}
        self._equal: dict[Rules, Rules] = {_NO_RULES: _NO_RULES}

    def rules(self, spec: WirePodSpec, labels: Mapping[str, str]) -> Rules:
        statements = _statements(spec, labels)
        known = self._stated.get(statements)
        if known is None:
            if len(self._stated) >= _MOST_KEPT:
                self._stated.clear()
                self._equal.clear()
            rules = _rules(spec, labels)
            known = self._stated[statements] = self._equal.setdefault(rules, rules)
        return known


def unsupported(spec: WirePodSpec) -> Iterator[str]:
    """Demands that nobody here can judge, whatever else is known of the cluster."""
    if any(_is_foreign(volume) for volume in spec.volumes or ()):
        yield "volumes"
    if spec.resource_claims:
        yield "resourceClaims"


def claims(spec: WirePodSpec, pod: str) -> tuple[str, ...]:
    """Names of the PersistentVolumeClaims that the pod uses; an ephemeral volume's is made of the pod's name."""
    found = [
        volume.persistent_volume_claim.claim_name for volume in spec.volumes or () if volume.persistent_volume_claim
    ]
    found += [f"{pod}-{volume.name}" for volume in spec.volumes or () if given(volume.ephemeral)]
    return tuple(found)


def local_data(spec: WirePodSpec) -> tuple[str, ...]:
    """Volumes whose data stays behind on the node."""
    found = [f"emptyDir:{volume.name}" for volume in spec.volumes or () if given(volume.empty_dir)]
    found += [f"hostPath:{volume.name}" for volume in spec.volumes or () if given(volume.host_path)]
    return tuple(found)


def _statements(spec: WirePodSpec, labels: Mapping[str, str]) -> tuple[object, ...]:
    """All that the rules depend on. The pod's own labels do only where its rules refer to them."""
    affinity, spreads = bytes(spec.affinity), bytes(spec.topology_spread_constraints)
    own = tuple(sorted(labels.items())) if b"LabelKeys" in affinity or b"LabelKeys" in spreads else ()
    return bytes(spec.tolerations), bytes(spec.node_selector), affinity, spreads, own, _host_ports(spec)


def _rules(spec: WirePodSpec, labels: Mapping[str, str]) -> Rules:
    demands = _part(spec.affinity, "spec.affinity", lambda text: decode_affinity(text, labels))
    hard, soft = _part(
        spec.topology_spread_constraints,
        "spec.topologySpreadConstraints",
        lambda text: decode_spreads(text, labels),
    )
    return Rules(
        tolerations=_part(spec.tolerations, "spec.tolerations", _decode_tolerations),
        node_selector=_part(spec.node_selector, "spec.nodeSelector", _decode_node_selector),
        node_affinity=demands.node_affinity,
        pod_affinity=demands.pod_affinity,
        pod_anti_affinity=demands.pod_anti_affinity,
        spread=hard,
        ports=_host_ports(spec),
        preferred=replace(demands.preferred, spread=soft),
    )


def _part(raw: Raw, path: str, decode: Callable[[bytes], V]) -> V:
    try:
        return decode(bytes(raw) or b"null")
    except (WrongField, msgspec.ValidationError) as error:
        raise inside(path, error) from error


def _decode_node_selector(text: bytes) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(decode_strings(text).items()))


def _decode_tolerations(text: bytes) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(each.key or "", each.operator or "Equal", each.value or "", each.effect or "")
        for each in _TOLERATIONS.decode(text) or ()
    )


def _host_ports(spec: WirePodSpec) -> tuple[HostPort, ...]:
    """Of containers that run with the pod. On the host's network every port is a host port, stated or not."""
    running = (*spec.containers, *(each for each in spec.init_containers or () if each.sidecar))
    ports = []
    for container in running:
        for port in container.ports or ():
            number = port.host_port or (port.container_port if spec.host_network else None)
            if number:
                ports.append(HostPort(number, port.protocol or "TCP", port.host_ip or "0.0.0.0"))
    return tuple(ports)


def _is_foreign(volume: WireVolume) -> bool:
    """A source that may bind the pod to some nodes in ways that we do not read."""
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
    return volume.persistent_volume_claim is None and not any(map(given, known))
