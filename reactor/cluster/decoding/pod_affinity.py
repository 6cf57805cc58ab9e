"""What a pod's spec says about other pods: affinity, anti-affinity and topology spread, required and preferred.

matchLabelKeys and mismatchLabelKeys stand for labels of the pod itself. The API server writes them into the selector
when a pod is created; where it has not (an older one, or a file written by hand) it is done here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from matching.problem import PodTerm, Preferred, Requirement, Selector, Spread, Term
from reactor.cluster.decoding.selectors import (
    WireNodeSelector,
    WireSelector,
    WireTerm,
    node_term,
    node_terms,
    selector,
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
Labels = Mapping[str, str]


class _WeighedNode(Struct, gc=False):
    preference: WireTerm | None = None
    weight: int = 1


class _NodeAffinity(Struct, gc=False, rename={"required": _REQUIRED, "preferred": _PREFERRED}):
    required: WireNodeSelector | None = None
    preferred: list[_WeighedNode] | None = None


class _PodTerm(Struct, rename="camel", gc=False):
    topology_key: str
    label_selector: WireSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: WireSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class _WeighedPods(Struct, rename="camel", gc=False):
    pod_affinity_term: _PodTerm | None = None
    weight: int = 1


class _PodAffinity(Struct, gc=False, rename={"required": _REQUIRED, "preferred": _PREFERRED}):
    required: list[_PodTerm] | None = None
    preferred: list[_WeighedPods] | None = None


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


class Demands(Struct, frozen=True, gc=False):
    """Affinity and spread of a pod, taken apart."""

    node_affinity: tuple[Term, ...] | None = None
    pod_affinity: tuple[PodTerm, ...] = ()
    pod_anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[Spread, ...] = ()
    preferred: Preferred = Preferred()


_AFFINITY = msgspec.json.Decoder(_Affinity | None)
_SPREADS = msgspec.json.Decoder(list[_Spread] | None)


def decode_affinity(text: bytes, labels: Labels) -> Demands:
    found = _AFFINITY.decode(text) or _Affinity()
    node = found.node_affinity or _NodeAffinity()
    near, apart = found.pod_affinity or _PodAffinity(), found.pod_anti_affinity or _PodAffinity()
    return Demands(
        None if node.required is None else node_terms(node.required),
        tuple(_pod_term(term, labels) for term in near.required or ()),
        tuple(_pod_term(term, labels) for term in apart.required or ()),
        preferred=Preferred(
            tuple((each.weight, node_term(each.preference)) for each in node.preferred or () if each.preference),
            _weighed(near.preferred, labels),
            _weighed(apart.preferred, labels),
        ),
    )


def decode_spreads(text: bytes, labels: Labels) -> tuple[tuple[Spread, ...], tuple[Spread, ...]]:
    """DoNotSchedule and ScheduleAnyway."""
    found = _SPREADS.decode(text) or []
    hard = tuple(_spread(each, labels) for each in found if each.when_unsatisfiable == "DoNotSchedule")
    return hard, tuple(_spread(each, labels) for each in found if each.when_unsatisfiable != "DoNotSchedule")


def _weighed(found: list[_WeighedPods] | None, labels: Labels) -> tuple[tuple[int, PodTerm], ...]:
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
    """The same key is forbidden in selector and matchLabelKeys, so one that is there was written by the API server."""
    if wire is None:
        return None
    stated = selector(wire).requirements
    known = {requirement.key for requirement in stated}
    merged = [Requirement(key, "In", (labels[key],)) for key in match if key in labels and key not in known]
    merged += [Requirement(key, "NotIn", (labels[key],)) for key in mismatch if key in labels and key not in known]
    return Selector((*stated, *merged))
