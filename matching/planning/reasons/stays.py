"""Why each pod that stays is not moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.plan import Stay, Stays, Unplaced
from matching.planning.outcome import Choice, Outcome
from matching.planning.prepared import PreparedProblem
from matching.planning.reasons.replay import Turn, turns
from matching.planning.reasons.wording import degraded
from matching.problem import Availability, Pod, Scope, from_columns

BY_INERTIA = "happy where it is (inertia)"

NEAREST = "prefers it: nearest fit"

AT_ITS_TURN = "of the nodes with room at its turn it prefers this one"

NOT_MATCHED = "happy: only unhappy and pending pods were matched"

KEPT_ON_NODE = "kept here: no other node had room for its requests"


def stays(prepared: PreparedProblem, outcome: Outcome) -> Stays:
    """By name."""
    arrays = prepared.arrays
    staying = np.flatnonzero((outcome.choice.at == arrays.current) & ~arrays.without_node)
    pods = [arrays.pods[pod] for pod in staying.tolist()]

    def write(positions: Sequence[int]) -> list[Stay]:
        chosen = [pods[at] for at in positions]
        columns = {
            "pod": [pod.key for pod in chosen],
            "uid": [pod.uid for pod in chosen],
            "node": [pod.node or "" for pod in chosen],
            "reason": _reasons(prepared, outcome, staying[positions]),
        }
        return from_columns(Stay, columns)

    return Stays(pods, write)


def fixed_pending(prepared: PreparedProblem) -> list[Unplaced]:
    """Pods without a node that may not be placed."""
    arrays = prepared.arrays
    unplaced = (arrays.pods[pod] for pod in np.flatnonzero(arrays.fixed & (arrays.current == NOWHERE)).tolist())
    return [Unplaced(pod.key, pod.uid, f"left alone: {pod.fixed}") for pod in unplaced if pod.node is None]


def _reasons(prepared: PreparedProblem, outcome: Outcome, pods: Ints) -> Sequence[str]:
    """Reasons that any planner can have; the rest comes from the planner itself, or from the pods' preferences."""
    arrays, wanted = prepared.arrays, outcome.wanted
    texts = np.full(len(arrays.pods), "", dtype=object)
    free = _among(len(texts), pods) & prepared.movable
    texts[~prepared.movable] = _out_of(prepared.problem.options.scope)
    for pod in np.flatnonzero(arrays.fixed).tolist():
        texts[pod] = _fixed(arrays.pods[pod])
    given_up = outcome.choice.given_up
    for pod, text in given_up.items():
        texts[pod] = text
    free &= ~_among(len(texts), given_up)
    for several, text in (
        ((wanted.at != arrays.current) & bool(outcome.stay_reason), outcome.stay_reason),
        (_among(len(texts), wanted.kept_on_node), KEPT_ON_NODE),
    ):
        texts[free & several] = text
        free &= ~several
    asked = np.flatnonzero(free)
    if outcome.reasons is not None:
        texts[asked] = outcome.reasons.why_stayed(asked)
    else:
        texts[asked] = _by_preference(prepared, wanted, asked)
    found: Sequence[str] = texts[pods].tolist()
    return found


def _among(number: int, pods: Iterable[int]) -> Mask:
    chosen = np.zeros(number, dtype=bool)
    chosen[pods if isinstance(pods, np.ndarray) else list(pods)] = True
    return chosen


def _by_preference(prepared: PreparedProblem, wanted: Choice, pods: Ints) -> list[str]:
    """Almost all pods of a plan stay, so this works on all of them at once where it can."""
    staying = wanted.chose & prepared.arrays.unhappy & (wanted.at == prepared.arrays.current)
    unhappy = {turn.pod: _unhappy_reason(prepared, turn) for turn in turns(prepared, wanted, staying)}
    chose, happy = wanted.chose[pods].tolist(), _happy_reasons(prepared, pods)
    headroom = prepared.arrays.options.headroom
    return [
        NOT_MATCHED
        if not took_part
        else degraded(wanted.headroom[pod], headroom)
        if pod in wanted.headroom
        else unhappy.get(pod) or reason
        for pod, took_part, reason in zip(pods.tolist(), chose, happy, strict=True)
    ]


def _happy_reasons(prepared: PreparedProblem, pods: Ints) -> list[str]:
    """Why happy pods prefer their current node."""
    if prepared.arrays.options.availability is Availability.AFTER:
        return [AT_ITS_TURN] * len(pods)
    ranks = prepared.own_node_ranks(_among(len(prepared.arrays.pods), pods) & ~prepared.arrays.unhappy)
    by_inertia, own_rank = ranks.by_inertia[pods].tolist(), ranks.rank[pods].tolist()
    rules = prepared.arrays.inter_pod
    involved = [False] * len(pods) if rules is None else rules.involved[pods].tolist()
    return [
        _lower_choice(rank, involved_pod) if rank > 1 else BY_INERTIA if inertia else NEAREST
        for rank, involved_pod, inertia in zip(own_rank, involved, by_inertia, strict=True)
    ]


def _unhappy_reason(prepared: PreparedProblem, turn: Turn) -> str:
    if turn.matched.own_node_relieved(turn.pod):
        return "unhappy, but pods that leave before it relieve its node enough"
    current, allowed = int(prepared.arrays.current[turn.pod]), prepared.candidates.of(turn.pod)
    if not allowed[current]:
        return f"should leave ({prepared.candidates.why_not(turn.pod, current)}), but no other node takes it"
    rank = prepared.preferences.order(turn.pod, allowed, turn.matched).tolist().index(current) + 1
    if rank > 1:
        rules = prepared.arrays.inter_pod
        return _lower_choice(rank, rules is not None and bool(rules.involved[turn.pod]))
    return "unhappy, but no other node it may use would be clearly less loaded"


@lru_cache(maxsize=4096)
def _lower_choice(rank: int, inter_pod: bool) -> str:
    if inter_pod:
        return f"choice {rank}: the nodes it prefers have no room, or inter-pod constraints refuse it"
    return f"choice {rank}: no room on the nodes it prefers"


def _fixed(pod: Pod) -> str:
    if pod.fixed:
        return f"fixed: {pod.fixed}"
    return f"fixed: its node {pod.node} is not in the problem"


def _out_of(scope: Scope) -> str:
    match scope:
        case Scope.AFFECTED:
            return "happy, and it does not have to make room"
        case Scope.PENDING:
            return "not in scope: only pods without a node are matched"
        case _:
            return "not in scope: only unhappy and pending pods are matched"
