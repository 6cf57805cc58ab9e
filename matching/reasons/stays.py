"""Per pod that stays: why it is not somewhere else."""

from __future__ import annotations

import numpy as np

from matching.case import Case
from matching.outcome import Choice, Outcome
from matching.plan import Stay, Unplaced
from matching.problem import Pod, Scope
from matching.reasons.moves import degraded
from matching.reasons.turns import Turn, turns

KEPT_HOME = "kept here: had it chosen, its requests would have fitted nowhere"
HELD = "kept here: in no order of the moves would the rules between pods have been kept"


def stays(case: Case, outcome: Outcome) -> tuple[Stay, ...]:
    """By name."""
    pods, home, at = case.arrays.pods, case.arrays.home, outcome.choice.at
    reasons = _Reasons(case, outcome)
    return tuple(
        Stay(pods[pod].key, pods[pod].uid, node, reasons.of(pod))
        for pod in np.flatnonzero(at == home).tolist()
        if (node := pods[pod].node) is not None
    )


def left_alone(case: Case) -> list[Unplaced]:
    """Pods without a node that may not be placed."""
    return [
        Unplaced(pod.key, pod.uid, f"left alone: {pod.fixed}")
        for pod in case.arrays.pods
        if pod.fixed and pod.node is None
    ]


class _Reasons:
    """What holds whatever the planner's aim is; the rest its own reasoning says, or the pods' preferences."""

    def __init__(self, case: Case, outcome: Outcome) -> None:
        wish = outcome.wish
        self._case, self._held_back = case, outcome.held_back
        self._impossible, self._kept_home = outcome.choice.held, wish.kept_home
        self._fixed, self._in_scope = case.arrays.fixed.tolist(), case.movable.tolist()
        self._would_move = (wish.at != case.arrays.home).tolist()
        self._own = outcome.reasoning or _Preferred(case, wish)

    def of(self, pod: int) -> str:
        if self._fixed[pod]:
            return _fixed(self._case.arrays.pods[pod])
        if not self._in_scope[pod]:
            return "not in scope: " + _only(self._case.problem.options.scope)
        if pod in self._impossible:
            return HELD
        if self._held_back and self._would_move[pod]:
            return self._held_back
        if pod in self._kept_home:
            return KEPT_HOME
        return self._own.why_stayed(pod)


class _Preferred:
    """Almost every pod of a plan stays, so what can be found for all of them at once is; the rest is look-ups."""

    def __init__(self, case: Case, wish: Choice) -> None:
        self._case, self._headroom = case, wish.headroom
        self._chose = wish.chose.tolist()
        self._held, self._place = case.tastes.held.tolist(), case.tastes.place.tolist()
        staying = wish.chose & case.arrays.unhappy & (wish.at == case.arrays.home)
        self._unhappy = {turn.pod: _unhappy(case, turn) for turn in turns(case, wish, staying)}

    def why_stayed(self, pod: int) -> str:
        if not self._chose[pod]:
            return "happy: only unhappy and pending pods were matched"
        if pod in self._headroom:
            return degraded(self._headroom[pod], self._case.arrays.options.headroom)
        return self._unhappy.get(pod) or self._happy(pod)

    def _happy(self, pod: int) -> str:
        if self._place[pod] > 1:
            return _lower_choice(self._case, pod, self._place[pod])
        return "happy where it is (inertia)" if self._held[pod] else "prefers it: nearest fit"


def _unhappy(case: Case, turn: Turn) -> str:
    if turn.standing.cured(turn.pod):
        return "unhappy, but those who leave before it relieve its node enough"
    order = case.preferences.order(turn.pod, case.candidates.of(turn.pod), turn.standing)
    place = order.tolist().index(case.arrays.home[turn.pod]) + 1
    if place > 1:
        return _lower_choice(case, turn.pod, place)
    return "unhappy, but no other node it may use would be clearly less loaded"


def _lower_choice(case: Case, pod: int, place: int) -> str:
    neighbours = case.arrays.neighbours
    if neighbours is not None and neighbours.matters_to(pod):
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
