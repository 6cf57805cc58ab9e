"""Scheduling constraints in a pod's spec: selectors, affinity, topology spread, tolerations, host ports.

matchLabelKeys and mismatchLabelKeys refer to labels of the pod itself. The API server writes them into the selector
when a pod is created; where it has not (an older version, or a file written by hand) it is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from matching.feasibility import rules_problem
from matching.problem import HostPort, PodTerm, Preferred, Requirement, Rules, Selector, Spread, Term, Toleration
from reactor.cluster.decoding.common import WrongField, decode_strings, inside
from reactor.cluster.decoding.pod_json import WirePodSpec

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_CACHE_SIZE = 16384
V = TypeVar("V")
Labels = Mapping[str, str]


class WireRequirement(Struct, gc=False):
    key: str
    operator: str
    values: list[str] | None = None


class WireSelector(Struct, rename="camel", gc=False):
    match_labels: dict[str, str] | None = None
    match_expressions: list[WireRequirement] | None = None


class WireTerm(Struct, rename="camel", gc=False):
    match_expressions: list[WireRequirement] | None = None
    match_fields: list[WireRequirement] | None = None


class WireNodeSelector(Struct, rename="camel", gc=False):
    node_selector_terms: list[WireTerm] | None = None


def requirements(found: list[WireRequirement] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, each.operator, tuple(each.values or ())) for each in found or ())


def selector(wire: WireSelector) -> Selector:
    labels = (Requirement(key, "In", (value,)) for key, value in sorted((wire.match_labels or {}).items()))
    return Selector((*labels, *requirements(wire.match_expressions)))


def node_term(wire: WireTerm) -> Term:
    return Term(requirements(wire.match_expressions), requirements(wire.match_fields))


def node_terms(wire: WireNodeSelector) -> tuple[Term, ...]:
    return tuple(node_term(term) for term in wire.node_selector_terms or ())


class _WeightedNode(Struct, gc=False):
    preference: WireTerm | None = None
    weight: int = 1


class _NodeAffinity(Struct, gc=False, rename={"required": _REQUIRED, "preferred": _PREFERRED}):
    required: WireNodeSelector | None = None
    preferred: list[_WeightedNode] | None = None


class _PodTerm(Struct, rename="camel", gc=False):
    topology_key: str
    label_selector: WireSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: WireSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class _WeightedPods(Struct, rename="camel", gc=False):
    pod_affinity_term: _PodTerm | None = None
    weight: int = 1


class _PodAffinity(Struct, gc=False, rename={"required": _REQUIRED, "preferred": _PREFERRED}):
    required: list[_PodTerm] | None = None
    preferred: list[_WeightedPods] | None = None


class _Affinity(Struct, rename="camel", gc=False):
    node_affinity: _NodeAffinity | None = None
    pod_affinity: _PodAffinity | None = None
    pod_anti_affinity: _PodAffinity | None = None


class _Spread(Struct, rename="camel", gc=False):
    topology_key: str
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: WireSelector | None = None
    min_domains: int | None = None
    match_label_keys: list[str] | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class Affinity(Struct, frozen=True, gc=False):
    """The affinity of a pod, by kind."""

    node_affinity: tuple[Term, ...] | None = None
    pod_affinity: tuple[PodTerm, ...] = ()
    pod_anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[Spread, ...] = ()
    preferred: Preferred = Preferred()


_AFFINITY = msgspec.json.Decoder(_Affinity | None)
_SPREADS = msgspec.json.Decoder(list[_Spread] | None)


def decode_affinity(text: bytes, labels: Labels) -> Affinity:
    found = _AFFINITY.decode(text) or _Affinity()
    node = found.node_affinity or _NodeAffinity()
    near, apart = found.pod_affinity or _PodAffinity(), found.pod_anti_affinity or _PodAffinity()
    return Affinity(
        None if node.required is None else node_terms(node.required),
        tuple(_pod_term(term, labels) for term in near.required or ()),
        tuple(_pod_term(term, labels) for term in apart.required or ()),
        preferred=Preferred(
            tuple((each.weight, node_term(each.preference)) for each in node.preferred or () if each.preference),
            _weighted(near.preferred, labels),
            _weighted(apart.preferred, labels),
        ),
    )


def decode_spreads(text: bytes, labels: Labels) -> tuple[tuple[Spread, ...], tuple[Spread, ...]]:
    """The hard ones (DoNotSchedule) and the soft ones (ScheduleAnyway)."""
    found = _SPREADS.decode(text) or []
    hard = tuple(_spread(each, labels) for each in found if each.when_unsatisfiable == "DoNotSchedule")
    return hard, tuple(_spread(each, labels) for each in found if each.when_unsatisfiable != "DoNotSchedule")


def _weighted(found: list[_WeightedPods] | None, labels: Labels) -> tuple[tuple[int, PodTerm], ...]:
    return tuple(
        (each.weight, _pod_term(each.pod_affinity_term, labels)) for each in found or () if each.pod_affinity_term
    )


def _pod_term(term: _PodTerm, labels: Labels) -> PodTerm:
    return PodTerm(
        term.topology_key,
        _with_keys(term.label_selector, labels, term.match_label_keys or (), term.mismatch_label_keys or ()),
        tuple(sorted(term.namespaces or ())),
        None if term.namespace_selector is None else selector(term.namespace_selector),
    )


def _spread(spread: _Spread, labels: Labels) -> Spread:
    return Spread(
        spread.topology_key,
        _with_keys(spread.label_selector, labels, spread.match_label_keys or ()),
        spread.max_skew,
        1 if spread.min_domains is None else spread.min_domains,
        spread.node_affinity_policy != "Ignore",
        spread.node_taints_policy == "Honor",
    )


def _with_keys(
    wire: WireSelector | None, labels: Labels, match: Iterable[str], mismatch: Iterable[str] = ()
) -> Selector | None:
    """The API forbids a key in both selector and matchLabelKeys, so one that is in both was added by the API server."""
    if wire is None:
        return None
    stated = selector(wire).requirements
    known = {requirement.key for requirement in stated}
    merged = [Requirement(key, "In", (labels[key],)) for key in match if key in labels and key not in known]
    merged += [Requirement(key, "NotIn", (labels[key],)) for key in mismatch if key in labels and key not in known]
    return Selector((*stated, *merged))


class _Toleration(Struct, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


_TOLERATIONS = msgspec.json.Decoder(list[_Toleration] | None)
_NO_RULES = Rules()


class PodRules(Struct, frozen=True, gc=False):
    rules: Rules
    problem: str = ""
    """Why they cannot be evaluated; they match no node then. The API server refuses such rules, a file does not."""


class ConstraintsDecoder:
    """Pods with equal constraints share one Rules value."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[object, ...], PodRules] = {}
        self._equal: dict[Rules, PodRules] = {_NO_RULES: PodRules(_NO_RULES)}

    def rules(self, spec: WirePodSpec, labels: Mapping[str, str]) -> PodRules:
        key = _rules_key(spec, labels)
        known = self._by_key.get(key)
        if known is None:
            if len(self._by_key) >= _CACHE_SIZE:
                self._by_key.clear()
                self._equal.clear()
            rules = _rules(spec, labels)
            if rules not in self._equal:
                problem = rules_problem(rules)
                self._equal[rules] = PodRules(Rules(node_affinity=()), problem) if problem else PodRules(rules)
            known = self._by_key[key] = self._equal[rules]
        return known


def _rules_key(spec: WirePodSpec, labels: Mapping[str, str]) -> tuple[object, ...]:
    """All that the rules depend on: the pod's own labels only where its rules refer to them."""
    affinity, spreads = bytes(spec.affinity), bytes(spec.topology_spread_constraints)
    own = tuple(sorted(labels.items())) if b"LabelKeys" in affinity or b"LabelKeys" in spreads else ()
    written = bytes(spec.tolerations), bytes(spec.node_selector), affinity, spreads
    return *written, own, _host_ports(spec), _features(spec)


def _rules(spec: WirePodSpec, labels: Mapping[str, str]) -> Rules:
    affinity = _part(spec.affinity, "spec.affinity", lambda text: decode_affinity(text, labels))
    hard, soft = _part(
        spec.topology_spread_constraints,
        "spec.topologySpreadConstraints",
        lambda text: decode_spreads(text, labels),
    )
    return Rules(
        tolerations=_part(spec.tolerations, "spec.tolerations", _decode_tolerations),
        node_selector=_part(spec.node_selector, "spec.nodeSelector", _decode_node_selector),
        node_affinity=affinity.node_affinity,
        pod_affinity=affinity.pod_affinity,
        pod_anti_affinity=affinity.pod_anti_affinity,
        spread=hard,
        ports=_host_ports(spec),
        features=_features(spec),
        preferred=replace(affinity.preferred, spread=soft),
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


def _features(spec: WirePodSpec) -> tuple[str, ...]:
    """What kube-scheduler (1.36) infers that the node has to declare."""
    found = []
    containers = (*spec.containers, *(spec.init_containers or ()))
    rules = (rule for container in containers for rule in container.restart_policy_rules or ())
    if any(rule.action == "RestartAllContainers" for rule in rules):
        found.append("RestartAllContainersOnContainerExits")
    if spec.host_network and spec.host_users is False:
        found.append("UserNamespacesHostNetworkSupport")
    return tuple(found)


def _host_ports(spec: WirePodSpec) -> tuple[HostPort, ...]:
    """Ports of containers that run with the pod. On the host's network every port is a host port."""
    running = (*spec.containers, *(each for each in spec.init_containers or () if each.sidecar))
    ports = []
    for container in running:
        for port in container.ports or ():
            number = port.host_port or (port.container_port if spec.host_network else None)
            if number:
                ports.append(HostPort(number, port.protocol or "TCP", port.host_ip or "0.0.0.0"))
    return tuple(ports)
