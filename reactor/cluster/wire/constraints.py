"""What a pod's spec demands of its node: rules that we judge, and the names of constraints that we do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw, Struct

from matching.problem import Requirement, Rules, Term, Toleration
from reactor.cluster.wire.parts import Memo, decode_strings, given
from reactor.cluster.wire.pod_shape import WireContainer, WirePodSpec, WireVolume
from reactor.cluster.wire.requests import JUDGED


class _Toleration(Struct, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class WireRequirement(Struct, gc=False):
    key: str
    operator: str
    values: list[str] | None = None


class WireTerm(Struct, rename="camel", gc=False):
    match_expressions: list[WireRequirement] | None = None
    match_fields: list[WireRequirement] | None = None


class WireNodeSelector(Struct, rename="camel", gc=False):
    node_selector_terms: list[WireTerm] | None = None


class _NodeAffinity(Struct, gc=False, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    required: WireNodeSelector | None = None


class _PodAffinity(Struct, gc=False, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    required: list[Raw] | None = None


class _Affinity(Struct, rename="camel", gc=False):
    node_affinity: _NodeAffinity | None = None
    pod_affinity: _PodAffinity | None = None
    pod_anti_affinity: _PodAffinity | None = None


class _Judged(Struct, frozen=True, gc=False):
    """An affinity taken apart."""

    node: tuple[Term, ...] | None = None
    unjudged: tuple[str, ...] = ()


_TOLERATIONS = msgspec.json.Decoder(list[_Toleration] | None)
_AFFINITY = msgspec.json.Decoder(_Affinity | None)
_NO_RULES = Rules()
_NO_AFFINITY = _Judged()


def requirements(found: list[WireRequirement] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, each.operator, tuple(each.values or ())) for each in found or ())


def terms(selector: WireNodeSelector) -> tuple[Term, ...]:
    return tuple(
        Term(requirements(term.match_expressions), requirements(term.match_fields))
        for term in selector.node_selector_terms or ()
    )


def _decode_tolerations(text: bytes) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(each.key or "", each.operator or "Equal", each.value or "", each.effect or "")
        for each in _TOLERATIONS.decode(text) or ()
    )


def _decode_selector(text: bytes) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(decode_strings(text).items()))


def _decode_affinity(text: bytes) -> _Judged:
    found = _AFFINITY.decode(text) or _Affinity()
    node = found.node_affinity.required if found.node_affinity else None
    unjudged = []
    if found.pod_affinity and found.pod_affinity.required:
        unjudged.append("podAffinity")
    if found.pod_anti_affinity and found.pod_anti_affinity.required:
        unjudged.append("podAntiAffinity")
    return _Judged(None if node is None else terms(node), tuple(unjudged))


class ConstraintsDecoder:
    def __init__(self) -> None:
        self._tolerations = Memo(_decode_tolerations)
        self._selectors = Memo(_decode_selector)
        self._affinities = Memo(_decode_affinity)
        self._rules: dict[Rules, Rules] = {_NO_RULES: _NO_RULES}

    def rules(self, spec: WirePodSpec) -> Rules:
        """Equal rules are one value, so that a planner may judge them once by identity or hash."""
        rules = Rules(
            self._tolerations.of(spec.tolerations, "spec.tolerations"),
            self._selectors.of(spec.node_selector, "spec.nodeSelector"),
            self._affinity(spec).node,
        )
        if len(self._rules) >= 16384:
            self._rules.clear()
        return self._rules.setdefault(rules, rules)

    def unjudged(self, spec: WirePodSpec, requests: Mapping[str, float]) -> tuple[str, ...]:
        return (*self._affinity(spec).unjudged, *_other_unjudged(spec, requests))

    def _affinity(self, spec: WirePodSpec) -> _Judged:
        return self._affinities.of(spec.affinity, "spec.affinity") if given(spec.affinity) else _NO_AFFINITY


def _other_unjudged(spec: WirePodSpec, requests: Mapping[str, float]) -> Iterator[str]:
    if any(spread.when_unsatisfiable == "DoNotSchedule" for spread in spec.topology_spread_constraints or ()):
        yield "topologySpread"
    if any(_takes_host_port(container, spec) for container in (*spec.containers, *(spec.init_containers or ()))):
        yield "hostPorts"
    if any(_is_foreign(volume) for volume in spec.volumes or ()):
        yield "volumes"
    if spec.resource_claims:
        yield "resourceClaims"
    if any(amount > 0 and name not in JUDGED for name, amount in requests.items()):
        yield "extendedResources"


def _takes_host_port(container: WireContainer, spec: WirePodSpec) -> bool:
    """On the host's network every port is a host port, stated or not."""
    return any(port.host_port or spec.host_network for port in container.ports or ())


def _is_foreign(volume: WireVolume) -> bool:
    known = (
        volume.empty_dir,
        volume.host_path,
        volume.config_map,
        volume.secret,
        volume.projected,
        volume.downward_api,
        volume.image,
    )
    return not any(map(given, known))


def local_data(spec: WirePodSpec) -> tuple[str, ...]:
    """Volumes whose data stays behind on the node."""
    found = [f"emptyDir:{volume.name}" for volume in spec.volumes or () if given(volume.empty_dir)]
    found += [f"hostPath:{volume.name}" for volume in spec.volumes or () if given(volume.host_path)]
    return tuple(found)
