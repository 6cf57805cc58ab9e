"""Per pod that stays: why it is not somewhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import compress

import numpy as np

from matching.arrays import NOWHERE, Ints, Mask
from matching.case import Case
from matching.outcome import Choice, Outcome
from matching.plan import Stay, Unplaced
from matching.prepared import stays_of
from matching.problem import Availability, Pod, Scope
from matching.reasons.turns import Turn, turns
from matching.reasons.wording import degraded

USED_TO_IT = "happy where it is (inertia)"
NEAREST = "prefers it: nearest fit"
AT_ITS_TURN = "of the nodes with room at its turn it prefers this one"
NOT_MATCHED = "happy: only unhappy and pending pods were matched"
KEPT_HOME = "kept here: had it chosen, its requests would have fitted nowhere"
HELD = "kept here: in no order of the moves would the rules between pods have been kept"


def stays(case: Case, outcome: Outcome) -> tuple[Stay, ...]:
    """By name. Where only a few pods are in scope, all others stay for one reason and are written once."""
    arrays = case.arrays
    out_of_scope = ~case.movable & ~arrays.fixed & (outcome.choice.at == arrays.home) & (arrays.home != NOWHERE)
    others = (outcome.choice.at == arrays.home) & ~out_of_scope
    pods = np.flatnonzero(others & ~arrays.without_node)
    written = list(case.prepared.staying(_out_of(case.problem.options.scope))) if out_of_scope.any() else []
    if not written:
        return tuple(_written(case, outcome, pods))
    for pod, stay in zip(pods.tolist(), _written(case, outcome, pods), strict=True):
        written[pod] = stay
    out_of_scope[pods] = True
    return tuple(stay for stay in compress(written, out_of_scope.tolist()) if stay is not None)


def _written(case: Case, outcome: Outcome, pods: Ints) -> list[Stay]:
    who = [case.arrays.pods[pod] for pod in pods.tolist()]
    return stays_of(who, _reasons(case, outcome, pods))


def left_alone(case: Case) -> list[Unplaced]:
    """Pods without a node that may not be placed."""
    arrays = case.arrays
    unplaced = (arrays.pods[pod] for pod in np.flatnonzero(arrays.fixed & (arrays.home == NOWHERE)).tolist())
    return [Unplaced(pod.key, pod.uid, f"left alone: {pod.fixed}") for pod in unplaced if pod.node is None]


def _reasons(case: Case, outcome: Outcome, pods: Ints) -> Sequence[str]:
    """What holds whatever the planner's aim is; the rest its own reasoning says, or the pods' preferences."""
    arrays, wish = case.arrays, outcome.wish
    texts = np.full(len(arrays.pods), "", dtype=object)
    free = _among(len(texts), pods) & case.movable
    texts[~case.movable] = _out_of(case.problem.options.scope)
    for pod in np.flatnonzero(arrays.fixed).tolist():
        texts[pod] = _fixed(arrays.pods[pod])
    for several, text in (
        (_among(len(texts), outcome.choice.held), HELD),
        ((wish.at != arrays.home) & bool(outcome.held_back), outcome.held_back),
        (_among(len(texts), wish.kept_home), KEPT_HOME),
    ):
        texts[free & several] = text
        free &= ~several
    asked = np.flatnonzero(free)
    if outcome.reasoning is not None:
        texts[asked] = [outcome.reasoning.why_stayed(pod) for pod in asked.tolist()]
    else:
        texts[asked] = _preferred(case, wish, asked)
    found: Sequence[str] = texts[pods].tolist()
    return found


def _among(number: int, pods: Iterable[int]) -> Mask:
    chosen = np.zeros(number, dtype=bool)
    chosen[pods if isinstance(pods, np.ndarray) else list(pods)] = True
    return chosen


def _preferred(case: Case, wish: Choice, pods: Ints) -> list[str]:
    """Almost every pod of a plan stays, so what can be found for all of them at once is; the rest is look-ups."""
    staying = wish.chose & case.arrays.unhappy & (wish.at == case.arrays.home)
    unhappy = {turn.pod: _unhappy(case, turn) for turn in turns(case, wish, staying)}
    chose, liking = wish.chose[pods].tolist(), _liking(case, pods)
    wanted = case.arrays.options.headroom
    return [
        NOT_MATCHED
        if not took_part
        else degraded(wish.headroom[pod], wanted)
        if pod in wish.headroom
        else unhappy.get(pod) or likes
        for pod, took_part, likes in zip(pods.tolist(), chose, liking, strict=True)
    ]


def _liking(case: Case, pods: Ints) -> list[str]:
    """What happy pods think of their own node."""
    if case.arrays.options.availability is Availability.AFTER:
        return [AT_ITS_TURN] * len(pods)
    tastes = case.tastes(_among(len(case.arrays.pods), pods) & ~case.arrays.unhappy)
    held, place = tastes.held[pods].tolist(), tastes.place[pods].tolist()
    rules = case.arrays.neighbours
    involved = [False] * len(pods) if rules is None else rules.involved[pods].tolist()
    return [
        _lower_choice(rank, minds) if rank > 1 else USED_TO_IT if used_to_it else NEAREST
        for rank, minds, used_to_it in zip(place, involved, held, strict=True)
    ]


def _unhappy(case: Case, turn: Turn) -> str:
    if turn.standing.cured(turn.pod):
        return "unhappy, but those who leave before it relieve its node enough"
    home, allowed = int(case.arrays.home[turn.pod]), case.candidates.of(turn.pod)
    if not allowed[home]:
        return f"should leave ({case.candidates.why_not(turn.pod, home)}), but no other node takes it"
    place = case.preferences.order(turn.pod, allowed, turn.standing).tolist().index(home) + 1
    if place > 1:
        rules = case.arrays.neighbours
        return _lower_choice(place, rules is not None and rules.matters_to(turn.pod))
    return "unhappy, but no other node it may use would be clearly less loaded"


@lru_cache(maxsize=4096)
def _lower_choice(place: int, rules_matter: bool) -> str:
    if rules_matter:
        return f"choice {place}: the nodes it likes better have no room, or rules between pods keep it away"
    return f"choice {place}: no room on the nodes it likes better"


def _fixed(pod: Pod) -> str:
    if pod.fixed:
        return f"fixed: {pod.fixed}"
    return f"fixed: its node {pod.node} is not in the problem"


def _out_of(scope: Scope) -> str:
    match scope:
        case Scope.AFFECTED:
            return "happy, and it need not make room"
        case Scope.PENDING:
            return "not in scope: only pods without a node are matched"
        case _:
            return "not in scope: only unhappy and pending pods are matched"
