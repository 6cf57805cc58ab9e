"""Questions about constraints that callers ask without planning."""

from __future__ import annotations

from matching.constraints.inter_pod import has_inter_pod_rules, pod_selectors
from matching.constraints.node_rules import VETOES, node_rules
from matching.constraints.taints import cordoned, removal_taint
from matching.constraints.validation import rules_problem, selector_problem
from matching.constraints.volumes import ZONE_LABELS
from matching.model.arrays import arrays_of
from matching.model.candidates import Candidates
from matching.model.ledger import Ledger
from matching.problem import Problem

__all__ = [
    "VETOES",
    "ZONE_LABELS",
    "cordoned",
    "has_inter_pod_rules",
    "pod_selectors",
    "removal_taint",
    "rules_problem",
    "selector_problem",
    "would_take",
]


def would_take(problem: Problem, uid: str, node: str) -> bool:
    """Whether the node would take a pod that is moved there now, by all hard constraints; peaks and headroom do not
    count. Both have to be in the problem."""
    arrays = arrays_of(problem)
    pod = next(number for number, each in enumerate(arrays.pods) if each.uid == uid)
    target = next(number for number, each in enumerate(arrays.nodes) if each.name == node)
    if cordoned(arrays.nodes[target]):
        return False
    candidates = Candidates(arrays, node_rules(arrays.rule_class, arrays.all_rules, arrays.pods, arrays.nodes))
    return bool(candidates.of(pod)[target]) and Ledger(arrays, arrays.current).fits_on(pod, target)
