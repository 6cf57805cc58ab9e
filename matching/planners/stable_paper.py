"""`stable-paper`: the algorithm of the STABLE paper in our reading, for comparison.

Preference lists are made once per trigger, by the distance between a pod's usage and the node's room (allocatable less
what cannot move), nearest first. A node with less left than the pod requests is not on the list. The quota is by
maximum usage. `propose` is the matching. All managed pods take part, whatever the scope (but in scope `pending` no
running pod moves). Happiness only triggers: there is no inertia, no headroom, no budget and no comparison with doing
nothing. A pod whose list ends loses its node.

Different from the paper: axes are shares of capacity (`units` changes that), usage is the newest sample instead of the
history, and a pod displaces others only where that makes room. docs/planners/stable-paper.md has the whole list.

Still kept: node rules (taints, selectors, volumes) shorten the lists; a running pod goes to no node without fresh
metrics; and a pod without a node has no history and ranks after those that have one. Requests only shorten the lists,
so the matching can put more requests on a node than it has room for. As in every plan, a move that cannot be carried
out in the plan's order is given up, and the plan says so. Dumped pods leave before the first move.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.arrays import Arrays
from matching.model.ledger import Ledger
from matching.parameters import ParameterError
from matching.plan import BlockingCause, Plan, PlannedMove, Promise, Unplaced
from matching.planning.outcome import Choice, Outcome, measure
from matching.planning.prepared import PreparedProblem, prepare
from matching.planning.reasons.wording import PENDING, plural
from matching.planning.write_plan import write_plan
from matching.problem import TOLERANCE, Dumping, Options, Problem, Scope


@dataclass(frozen=True, slots=True)
class StablePaperPlanner:
    name: ClassVar[str] = "stable-paper"
    waives: ClassVar[frozenset[Promise]] = frozenset(
        {
            Promise.NOBODY_LEFT_OUT,
            Promise.NEVER_WORSE,
            Promise.BUDGETS,
            Promise.SCOPE,
            Promise.RESTRAINT,
        }
    )

    units: Mapping[str, float] = field(default_factory=dict)
    """What counts as 1 in a distance, by axis, such as `{cpu: 1, memory: 1e9}` for the paper's cores and GB; axes that
    are not named do not count. Empty: shares of the largest node's capacity, all axes."""
    places_pending: bool = True
    """Place pending pods as they come. False: they wait for the next rematch of all pods, as dumped pods do in the
    paper."""

    def __post_init__(self) -> None:
        for axis, unit in self.units.items():
            if not unit > 0:
                raise ParameterError("units", f"{axis} is {unit:g}; a unit must be above 0")

    def match(self, problem: Problem) -> dict[str, str | None]:
        """The matching alone: the node of each pod, whether its move can be carried out or not."""
        prepared = prepare(_paper_options(problem))
        arrays, at = prepared.arrays, propose(prepared, _PreferenceLists(prepared, self.units).of)
        nodes = [None if node == NOWHERE else arrays.nodes[node].name for node in at.tolist()]
        return {pod.key: node for pod, node in zip(arrays.pods, nodes, strict=True)}

    def plan(self, problem: Problem) -> Plan:
        prepared = prepare(_paper_options(problem))
        lists = _PreferenceLists(prepared, self.units)
        waiting = problem.options.scope is Scope.PENDING and not self.places_pending
        nobody = np.where(prepared.movable, NOWHERE, prepared.arrays.current)
        at = nobody if waiting else propose(prepared, lists.of)
        choice = Choice(at, prepared.movable, {})
        outcome = Outcome(choice, choice, BlockingCause.DISPLACEMENT, reasons=_PaperReasons(prepared, lists, at))
        plan = write_plan(self.name, prepared, outcome)
        moves = tuple(_explained_moves(plan, prepared, lists))
        unplaced = plan.unplaced if waiting else tuple(_explained_unplaced(plan, prepared, lists))
        return _measured(problem, prepared.arrays, replace(plan, moves=moves, unplaced=unplaced))


def _paper_options(problem: Problem) -> Problem:
    """In the paper, being unhappy does not change what a pod prefers."""
    scope = Scope.PENDING if problem.options.scope is Scope.PENDING else Scope.CLUSTER
    options = Options(scope=scope, inertia=0.0, headroom=0.0, soft_weight=0.0, dumping=Dumping.ALLOW)
    return replace(problem, options=options, pods=tuple(replace(pod, happy=True) for pod in problem.pods))


def _measured(problem: Problem, arrays: Arrays, plan: Plan) -> Plan:
    """Before and after use the headroom of the problem, so that planners can be compared."""
    index = {node.name: number for number, node in enumerate(arrays.nodes)}
    ends = {stay.pod: stay.node for stay in plan.stays} | {move.pod: move.target for move in plan.moves}
    at = np.array([index.get(ends.get(pod.key, ""), NOWHERE) for pod in arrays.pods], dtype=np.int64)
    original = replace(arrays, options=problem.options)
    return replace(plan, before=measure(original, arrays.current), after=measure(original, at))


class _PreferenceLists:
    """A list does not change during the matching, so it is computed again instead of stored."""

    def __init__(self, prepared: PreparedProblem, units: Mapping[str, float]) -> None:
        self._prepared = prepared
        self._scale = _in_units(prepared.arrays, units) if units else None
        self._unmoved = Ledger(prepared.arrays, np.where(prepared.movable, NOWHERE, prepared.arrays.current))

    def of(self, pod: int) -> Ints:
        listed = np.flatnonzero(self._admitted(pod))
        nearest: Ints = listed[np.argsort(self.distances(pod)[listed], kind="stable")]
        return nearest

    def distances(self, pod: int) -> Floats:
        preferences = self._prepared.preferences
        row: Floats
        if self._scale is None:
            row = preferences.distances_of(np.array([pod]))[0]
        else:
            away = preferences.room_at(None) - self._prepared.arrays.usual[:, [pod]]
            row = np.sqrt(np.square(away * self._scale[:, None]).sum(axis=0))
        return row

    def _admitted(self, pod: int) -> Mask:
        return self._prepared.candidates.of(pod) & self._unmoved.fits_requests(pod)


def _in_units(arrays: Arrays, units: Mapping[str, float]) -> Floats:
    """By axis: what a share of it is in these units; an axis that is not named counts nothing."""
    named = zip(arrays.axes, arrays.unit.tolist(), strict=True)
    return np.array([share / units[axis] if axis in units else 0.0 for axis, share in named])


def _explained_moves(plan: Plan, prepared: PreparedProblem, lists: _PreferenceLists) -> Iterator[PlannedMove]:
    """Adds that the nodes higher on the list refused the pod."""
    number = {pod.key: at for at, pod in enumerate(prepared.arrays.pods)}
    for move in plan.moves:
        higher = {prepared.arrays.nodes[node].name for node in lists.of(number[move.pod])[: move.rank - 1].tolist()}
        yield replace(
            move,
            rejected=tuple(
                replace(no, reason=f"{no.reason}; it refused the pod: full of pods that it ranks higher")
                if no.node in higher
                else no
                for no in move.rejected
            ),
        )


def _explained_unplaced(plan: Plan, prepared: PreparedProblem, lists: _PreferenceLists) -> Iterator[Unplaced]:
    number = {pod.key: at for at, pod in enumerate(prepared.arrays.pods)}
    for left in plan.unplaced:
        pod = number[left.pod]
        if prepared.movable[pod]:
            listed = len(lists.of(pod))
            asked = f"its list ended: {plural(listed, 'node')} of {len(prepared.arrays.nodes)} on it, none takes it"
            yield replace(left, reason=f"{'dumped: ' if left.source else ''}{asked}; in the end it {left.reason}")
        else:
            yield left


@dataclass(frozen=True, slots=True)
class _PaperReasons:
    prepared: PreparedProblem
    lists: _PreferenceLists
    at: Ints

    def rank(self, pod: int) -> int:
        return int(np.flatnonzero(self.lists.of(pod) == self.at[pod])[0]) + 1

    def why_moved(self, pod: int) -> tuple[str, ...]:
        arrays, target = self.prepared.arrays, int(self.at[pod])
        why = PENDING if arrays.current[pod] == NOWHERE else "all pods are matched again"
        listed, distance = len(self.lists.of(pod)), self.costs(pod)[target]
        where = f"{arrays.nodes[target].name} is choice {self.rank(pod)} of the {listed} on its list"
        return why, f"{where}, distance {distance:.2f}"

    def why_stayed(self, pods: Ints) -> Sequence[str]:
        return [
            f"its current node is choice {self.rank(pod)} of the {len(self.lists.of(pod))} on its list"
            for pod in pods.tolist()
        ]

    def costs(self, pod: int) -> Floats:
        return self.lists.distances(pod)

    def describe_cost(self, cost: float) -> str:
        return f"distance {cost:.2f}"


def propose(prepared: PreparedProblem, lists: Callable[[int], Ints]) -> Ints:
    """Algorithm 2 of the paper: the node of each pod. `lists` gives a movable pod's nodes, the preferred one first.

    Our reading where the paper is silent or contradicts itself:

    - The lists are made once, before the matching, and do not change.
    - Free pods wait in one queue, at first by name. The first pod proposes down its list until a node takes it. A
      displaced pod joins the end of the queue and continues after the node that displaced it. No pod proposes to a node
      twice, so it ends.
    - A node takes a pod while its room by maximum usage is strictly larger than its pods together with the new one, and
      while its pod count allows it.
    - A full node displaces the pods it ranks lowest, only as many as needed, and only if that makes room. (The printed
      pseudocode displaces every lower-ranked pod and never checks whether that helps.)
    - A pod whose list ends is dumped.

    All nodes rank by CPU use, but proposals come in another order. With sizes, a displaced pod may later fit on a node
    that it does not ask again, so blocking pairs can be left.
    """
    arrays = prepared.arrays
    taken = _TakenPods(prepared)
    waiting = deque(np.flatnonzero(prepared.movable).tolist())
    asked = np.zeros(len(arrays.pods), dtype=np.int64)
    at = np.where(prepared.movable, NOWHERE, arrays.current)
    while waiting:
        pod = waiting.popleft()
        nodes = lists(pod)[asked[pod] :].tolist()
        for node in nodes:
            asked[pod] += 1
            displaced = taken.take(pod, node)
            if displaced is None:
                continue
            at[pod] = node
            at[displaced] = NOWHERE
            waiting.extend(displaced)
            break
    return at


class _TakenPods:
    """What each node has left, and the pods that it took, by rank."""

    def __init__(self, prepared: PreparedProblem) -> None:
        arrays = prepared.arrays
        without = Ledger(arrays, np.where(prepared.movable, NOWHERE, arrays.current))
        self._left: Floats = arrays.allocatable - without.load
        self._slots: list[int] = without.slots.tolist()
        self._peak = arrays.peak
        self._rank = np.empty(len(arrays.pods), dtype=np.int64)
        self._rank[prepared.ranking] = np.arange(len(arrays.pods))
        self._taken: list[list[tuple[int, int]]] = [[] for _ in arrays.nodes]

    def take(self, pod: int, node: int) -> list[int] | None:
        """The pods that are displaced for this one; None when it is refused."""
        left, slots = self._left[:, node], self._slots[node]
        taken, rank, leaving = self._taken[node], int(self._rank[pod]), 0
        while not self._fits(pod, left, slots):
            leaving += 1
            if leaving > len(taken) or taken[-leaving][0] < rank:
                return None
            left = left + self._peak[:, taken[-leaving][1]]
            slots += 1
        displaced = [other for _, other in taken[len(taken) - leaving :]]
        del taken[len(taken) - leaving :]
        insort(taken, (rank, pod))
        self._left[:, node] = left - self._peak[:, pod]
        self._slots[node] = slots - 1
        return displaced

    def _fits(self, pod: int, left: Floats, slots: int) -> bool:
        peak = self._peak[:, pod]
        return slots >= 1 and bool(((peak == 0) | (left > peak + TOLERANCE)).all())
