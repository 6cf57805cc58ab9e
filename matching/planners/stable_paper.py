"""`stable-paper`: STABLE as the paper tells it, to compare with and to replay it.

Lists are made once per trigger. A pod's list is by the distance between its historical usage and the node's room
(allocatable less what cannot move), nearest first; a node with less left than the pod requests is not on it. The quota
is by maximum usage. `proposals` is the matching, with our reading of it. All managed pods take part, whatever the scope
(but where only pending pods are to be placed nobody else moves); happiness only triggers: there is neither inertia nor
headroom, no budget, no comparison with doing nothing. A pod whose list runs out loses its node.

Kept all the same: rules between a pod and a node (taints, selectors, volumes) shorten the lists, a running pod goes to
no node without fresh metrics, a pod without a node has no history and ranks behind those that have one, and a move that
rules between pods refuse in any order is given up. Requests are looked at only for the lists, so the requests on a node
may add up to more than it has: the certificate says where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from matching.arrays import NOWHERE, Arrays, Floats, Ints, Mask
from matching.case import Case, open_case
from matching.ledger import Ledger
from matching.measures import measure
from matching.outcome import Choice, Outcome
from matching.plan import Cause, Plan, PlannedMove, Promise, Unplaced
from matching.planners.proposals import propose
from matching.problem import Dumping, Options, Problem, Scope
from matching.reasons.wording import PENDING, plural
from matching.writing import write_plan


@dataclass(frozen=True, slots=True)
class StablePaperPlanner:
    name: ClassVar[str] = "stable-paper"
    waives: ClassVar[frozenset[Promise]] = frozenset(
        {
            Promise.FEASIBLE,
            Promise.NOBODY_LEFT_OUT,
            Promise.NEVER_WORSE,
            Promise.BUDGETS,
            Promise.SCOPE,
            Promise.RESTRAINT,
        }
    )

    def plan(self, problem: Problem) -> Plan:
        case = open_case(_as_the_paper_has_it(problem))
        lists = _Lists(case)
        at = propose(case, lists.of)
        choice = Choice(at, case.movable, {})
        outcome = Outcome(choice, choice, Cause.DISPLACEMENT, reasoning=_Reasons(case, lists, at))
        plan = write_plan(self.name, case, outcome)
        moves, unplaced = tuple(_asked_before(plan, case, lists)), tuple(_told(plan, case, lists))
        return _measured(problem, case.arrays, replace(plan, moves=moves, unplaced=unplaced))


def _as_the_paper_has_it(problem: Problem) -> Problem:
    """Being unhappy changes nothing in what a pod prefers."""
    scope = Scope.PENDING if problem.options.scope is Scope.PENDING else Scope.CLUSTER
    options = Options(scope=scope, inertia=0.0, headroom=0.0, soft_weight=0.0, dumping=Dumping.ALLOW)
    return replace(problem, options=options, pods=tuple(replace(pod, happy=True) for pod in problem.pods))


def _measured(problem: Problem, arrays: Arrays, plan: Plan) -> Plan:
    """Before and after are told by the headroom that was asked for, so that planners can be compared."""
    index = {node.name: number for number, node in enumerate(arrays.nodes)}
    ends = {stay.pod: stay.node for stay in plan.stays} | {move.pod: move.target for move in plan.moves}
    at = np.array([index.get(ends.get(pod.key, ""), NOWHERE) for pod in arrays.pods], dtype=np.int64)
    asked = replace(arrays, options=problem.options)
    return replace(plan, before=measure(asked, arrays.home), after=measure(asked, at))


class _Lists:
    """Nothing a list is made of changes while the matching goes on, so it can be made again instead of kept."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._unmoved = Ledger(case.arrays, np.where(case.movable, NOWHERE, case.arrays.home))

    def of(self, pod: int) -> Ints:
        listed = np.flatnonzero(self._admitted(pod))
        nearest: Ints = listed[np.argsort(self.distances(pod)[listed], kind="stable")]
        return nearest

    def distances(self, pod: int) -> Floats:
        row: Floats = self._case.preferences.distances_of(np.array([pod]))[0]
        return row

    def _admitted(self, pod: int) -> Mask:
        return self._case.candidates.of(pod) & self._unmoved.fits_requests(pod)


def _asked_before(plan: Plan, case: Case, lists: _Lists) -> Iterator[PlannedMove]:
    """What a node that stands higher on the list said is more than its distance."""
    number = {pod.key: at for at, pod in enumerate(case.arrays.pods)}
    for move in plan.moves:
        higher = {case.arrays.nodes[node].name for node in lists.of(number[move.pod])[: move.rank - 1].tolist()}
        yield replace(
            move,
            rejected=tuple(
                replace(no, reason=f"{no.reason}; asked before, full of pods that it ranks higher")
                if no.node in higher
                else no
                for no in move.rejected
            ),
        )


def _told(plan: Plan, case: Case, lists: _Lists) -> Iterator[Unplaced]:
    number = {pod.key: at for at, pod in enumerate(case.arrays.pods)}
    for left in plan.unplaced:
        pod = number[left.pod]
        if case.movable[pod]:
            listed = len(lists.of(pod))
            asked = f"its list ran out: {plural(listed, 'node')} of {len(case.arrays.nodes)} on it, none takes it"
            yield replace(left, reason=f"{'dumped: ' if left.source else ''}{asked}; in the end it {left.reason}")
        else:
            yield left


@dataclass(frozen=True, slots=True)
class _Reasons:
    case: Case
    lists: _Lists
    at: Ints

    def rank(self, pod: int) -> int:
        return int(np.flatnonzero(self.lists.of(pod) == self.at[pod])[0]) + 1

    def why_moved(self, pod: int) -> tuple[str, ...]:
        arrays, target = self.case.arrays, int(self.at[pod])
        who = PENDING if arrays.home[pod] == NOWHERE else "everybody is matched anew"
        listed, distance = len(self.lists.of(pod)), self.costs(pod)[target]
        where = f"{arrays.nodes[target].name} is choice {self.rank(pod)} of the {listed} on its list"
        return who, f"{where}, distance {distance:.2f}"

    def why_stayed(self, pod: int) -> str:
        return f"its own node is choice {self.rank(pod)} of the {len(self.lists.of(pod))} on its list"

    def costs(self, pod: int) -> Floats:
        return self.lists.distances(pod)

    def worded(self, cost: float) -> str:
        return f"distance {cost:.2f}"
