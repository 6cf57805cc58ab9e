"""Per pod that stays: why it is not somewhere else."""

from __future__ import annotations

from matching.case import Case
from matching.outcome import Outcome
from matching.plan import Stay, Unplaced
from matching.problem import Pod, Scope
from matching.reasons.moves import degraded

KEPT_HOME = "kept here: had it chosen, its requests would have fitted nowhere"
HELD = "kept here: in no order of the moves would the rules between pods have been kept"


def stays(case: Case, outcome: Outcome) -> tuple[Stay, ...]:
    """By name; found in rank order, which is how the preferences are made fastest."""
    pods, home, at = case.arrays.pods, case.arrays.home, outcome.choice.at
    found = {
        pod: Stay(pods[pod].key, pods[pod].uid, node, _reason(case, outcome, pod))
        for pod in case.ranking[at[case.ranking] == home[case.ranking]].tolist()
        if (node := pods[pod].node) is not None
    }
    return tuple(found[pod] for pod in sorted(found))


def left_alone(case: Case) -> list[Unplaced]:
    """Pods without a node that may not be placed."""
    return [
        Unplaced(pod.key, pod.uid, f"left alone: {pod.fixed}")
        for pod in case.arrays.pods
        if pod.fixed and pod.node is None
    ]


def _reason(case: Case, outcome: Outcome, pod: int) -> str:
    wish = outcome.wish
    if case.arrays.fixed[pod]:
        return _fixed(case.arrays.pods[pod])
    if not case.movable[pod]:
        return "not in scope: " + _only(case.problem.options.scope)
    if pod in outcome.choice.held:
        return HELD
    if outcome.held_back and wish.at[pod] != case.arrays.home[pod]:
        return outcome.held_back
    if pod in wish.kept_home:
        return KEPT_HOME
    if outcome.reasoning is not None:
        return outcome.reasoning.why_stayed(pod)
    if not wish.chose[pod]:
        return "happy: only unhappy and pending pods were matched"
    if pod in wish.headroom:
        return degraded(wish.headroom[pod], case.arrays.options.headroom)
    return _chosen(case, pod)


def _chosen(case: Case, pod: int) -> str:
    allowed = case.candidates.of(pod)
    home = int(case.arrays.home[pod])
    if case.preferences.choose(pod, allowed) == home:
        if case.arrays.unhappy[pod]:
            return "unhappy, but no other node it may use would be clearly less loaded"
        if case.preferences.held_by_inertia(pod, allowed):
            return "happy where it is (inertia)"
        return "prefers it: nearest fit"
    place = case.preferences.order(pod, allowed).tolist().index(home) + 1
    if case.arrays.neighbours is not None and case.arrays.neighbours.matters_to(pod):
        return f"choice {place}: the nodes it likes better have no room, or rules between pods keep it away"
    return f"choice {place}: no room on the nodes it likes better"


def _fixed(pod: Pod) -> str:
    if pod.fixed:
        return f"fixed: {pod.fixed}"
    return f"fixed: its node {pod.node} is not in the problem"


def _only(scope: Scope) -> str:
    return (
        "only pods without a node are matched"
        if scope is Scope.PENDING
        else "only unhappy and pending pods are matched"
    )
