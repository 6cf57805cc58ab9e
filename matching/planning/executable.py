"""What a plan lists can be carried out in its order. This is the only place that decides about stuck moves.

Moves that wait for each other's room in a ring, moves that wait behind such a ring, and moves that inter-pod
constraints refuse at their turn are stuck (`matching.planning.move_order`). Two ways out are compared by the planner's
own objective (`Outcome.worth`), and the better one is taken:

- *Redirect*: a pod of the ring goes to a third node with slack, and others take the room that it leaves. The least
  valuable pod is tried first. The third node has room for it now and at the end, keeps its headroom, and relieves the
  pod if it is unhappy.
- *Give up*: the stuck pods stay. All other moves are possible without them.

With both, a pod stays, too, when its target stays crowded because other pods cannot leave it. No pod moves twice. A
pending pod whose node is not freed goes to the least loaded node with room. Pods that are spread keep away from their
replicas.

Planners without an objective (a user's function, a published algorithm, latency probes) only give stuck moves up:
anything else would not be their plan.

Every loop ends: each pod is redirected at most once, every carried out move makes the stuck ones fewer, and each round
of `_give_up` has fewer moves than the one before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.arrays import Arrays
from matching.model.ledger import Ledger, peak_loads, without_dumped
from matching.plan import BlockingCause
from matching.planning.budget import Budget, movers
from matching.planning.move_order import order_moves, order_of_placement
from matching.planning.outcome import Choice, MoveOrder, Outcome, with_placement
from matching.planning.prepared import PreparedProblem
from matching.preferences import DECIMALS
from matching.problem import TOLERANCE

_MOST_TRIED = 2000
"""So many pods of one plan are redirected at most, or tried in vain: each costs a look at all nodes."""


@dataclass(frozen=True, slots=True)
class _Executable:
    at: Ints
    order: tuple[int, ...]


def executable(prepared: PreparedProblem, outcome: Outcome) -> Outcome:
    """The outcome without stuck moves, and with an order of the others. One that has an order is returned as it is."""
    if outcome.order is not None:
        return outcome
    wanted = outcome.choice.at
    ordered = order_of_placement(prepared, wanted)
    if not ordered.stuck:
        return replace(outcome, order=ordered.in_order)
    if outcome.worth is None:
        found = _give_up(prepared, wanted, ordered, crowding=True)
    else:
        stays = _give_up(prepared, wanted, ordered)
        redirected = _give_up(prepared, *_Redirection(prepared, wanted, ordered).run())
        found = redirected if outcome.worth(redirected.at) < outcome.worth(stays.at) else stays
    cause = outcome.cause
    if cause is BlockingCause.NO_STABLE_MATCHING:
        cause = BlockingCause.MOVE_ORDER
    return replace(outcome, choice=instead_of(prepared, outcome.choice, found.at), cause=cause, order=found.order)


def instead_of(prepared: PreparedProblem, wanted: Choice, at: Ints) -> Choice:
    """The choice with the placement `at`, because some of its moves are stuck, and what that means for each pod."""
    arrays, ends = prepared.arrays, without_dumped(prepared.arrays, at)
    given_up, redirected = dict[int, str](), dict[int, str]()
    for pod in np.flatnonzero(at != wanted.at).tolist():
        target = int(wanted.at[pod])
        if at[pod] != arrays.current[pod]:
            redirected[pod] = f"not to {arrays.nodes[target].name}: moves there wait for each other's room"
        elif arrays.current[pod] != NOWHERE:
            given_up[pod] = f"kept here: {_why_not(ends, pod, target, arrays.nodes[target].name)}"
    return replace(with_placement(wanted, at), given_up=given_up, redirected=redirected)


def _why_not(ends: Ledger, pod: int, node: int, name: str) -> str:
    if not ends.has_room_on(pod, node):
        return f"{name} has no room for it, because the moves that would make some wait for each other"
    if not ends.inter_pod.allows_on(pod, node):
        return f"inter-pod constraints refuse it on {name} at its turn"
    return f"{name} stays crowded, because pods that should leave it cannot"


def _give_up(prepared: PreparedProblem, at: Ints, ordered: MoveOrder, *, crowding: bool = False) -> _Executable:
    """The stuck pods stay where they are, and unless `crowding` is allowed, so do the pods that they would crowd."""
    arrays, waiting = prepared.arrays, list[int]()
    planned = peak_loads(arrays, at)
    order = ordered.in_order
    while True:
        waiting += [pod for pod in ordered.stuck if arrays.pending[pod]]
        at = _staying(arrays, at, ordered.stuck)
        harmed = _on_crowded_nodes(arrays, at, planned)
        if crowding or not len(harmed):
            break
        at = _staying(arrays, at, harmed.tolist())
        gone = set(harmed.tolist())
        ordered = order_moves(arrays, [pod for pod in order if pod not in gone], at)
        order = ordered.in_order
    return _with_pending(prepared, at, order, waiting)


def _staying(arrays: Arrays, at: Ints, pods: Iterable[int]) -> Ints:
    at, back = at.copy(), list(pods)
    at[back] = arrays.current[back]
    return at


def _on_crowded_nodes(arrays: Arrays, at: Ints, planned: Floats) -> Ints:
    """Running pods that moved to a node which ends overloaded, and more loaded than planned; not unhappy ones that it
    relieves all the same."""
    load, options = peak_loads(arrays, at), arrays.options
    crowded = (load > 1 - options.headroom + TOLERANCE) & (load > planned + TOLERANCE)
    moved = movers(arrays, at)
    moved = moved[at[moved] != NOWHERE]
    moved = moved[crowded[at[moved]]]
    before = peak_loads(arrays, arrays.current)
    relieved = arrays.unhappy[moved] & (load[at[moved]] <= before[arrays.current[moved]] - options.relief + TOLERANCE)
    harmed: Ints = moved[~relieved]
    return harmed


def _with_pending(prepared: PreparedProblem, at: Ints, order: Sequence[int], waiting: Sequence[int]) -> _Executable:
    """Pending pods whose node was not freed go last, to the least loaded node that takes them."""
    ledger, at, placed = without_dumped(prepared.arrays, at), at.copy(), list[int]()
    for pod in waiting:
        possible = prepared.candidates.of(pod) & ledger.fits(pod)
        if possible.any():
            at[pod] = _least_loaded(prepared.arrays, ledger, pod, possible, at)
            ledger.put(pod, int(at[pod]))
            placed.append(pod)
    return _Executable(at, (*order, *placed))


def _least_loaded(arrays: Arrays, ledger: Ledger, pod: int, among: Mask, at: Ints) -> int:
    """A pod that is spread goes away from its replicas first, which are where `at` says."""
    costs, spread = ledger.shares_with(pod).max(axis=0, initial=0.0), arrays.default_spread
    if spread is not None and spread.applies[pod]:
        costs = costs + spread.cost(pod, at[None])[0]
    return int(np.where(among, costs.round(DECIMALS), np.inf).argmin())


class _Redirection:
    """Goes on from where the moves are stuck."""

    def __init__(self, prepared: PreparedProblem, at: Ints, ordered: MoveOrder) -> None:
        self._prepared, self._arrays = prepared, prepared.arrays
        self._at, self._order, self._stuck = at.copy(), list(ordered.in_order), dict.fromkeys(ordered.stuck)
        self._waiting: defaultdict[int, list[int]] = defaultdict(list)
        """By the node that they want; the most valuable first."""
        for pod in ordered.stuck:
            self._waiting[int(at[pod])].append(pod)
        rules = self._arrays.inter_pod
        self._involved = [] if rules is None else [pod for pod in ordered.stuck if rules.involved[pod]]
        self._now = without_dumped(self._arrays, _staying(self._arrays, at, ordered.stuck))
        self._end = without_dumped(self._arrays, at)
        self._before = peak_loads(self._arrays, self._arrays.current)
        self._budget = Budget(self._arrays)
        if self._budget.limited:
            for pod in movers(self._arrays, at).tolist():
                self._budget.spend(pod, int(at[pod]))

    def run(self) -> tuple[Ints, MoveOrder]:
        running = [pod for pod in reversed(self._stuck) if not self._arrays.pending[pod]]
        for pod in running[:_MOST_TRIED]:
            if pod in self._stuck and (node := self._slack_node(pod)) is not None:
                self._redirect(pod, node)
                self._carry_out_possible(int(self._arrays.current[pod]))
        return self._at, MoveOrder(tuple(self._order), tuple(self._stuck))

    def _redirect(self, pod: int, node: int) -> None:
        wanted = int(self._at[pod])
        self._end.shift(pod, wanted, node)
        self._budget.refund(pod, wanted)
        self._budget.spend(pod, node)
        self._at[pod] = node
        self._carry_out(pod)

    def _carry_out(self, pod: int) -> None:
        self._now.shift(pod, int(self._arrays.current[pod]), int(self._at[pod]))
        self._order.append(pod)
        del self._stuck[pod]

    def _carry_out_possible(self, freed: int) -> None:
        """What the room that is free on a node makes possible, and what that makes possible."""
        nodes = [freed]
        while nodes:
            for pod in (*self._waiting[nodes.pop()], *self._involved):
                if pod in self._stuck and self._now.fits_on(pod, int(self._at[pod])):
                    self._carry_out(pod)
                    nodes.append(int(self._arrays.current[pod]))

    def _slack_node(self, pod: int) -> int | None:
        """The least loaded node with room for the pod now and when the plan is done; None when there is none, or when
        it would help nobody that the pod goes there."""
        arrays, wanted, current = self._arrays, int(self._at[pod]), int(self._arrays.current[pod])
        if not arrays.unhappy[pod] and not self._lets_another_go(pod):
            return None
        possible = self._prepared.candidates.of(pod) & self._now.fits(pod)
        possible[[current, wanted]] = False
        if not possible.any():
            return None
        self._budget.refund(pod, wanted)
        possible &= self._budget.may_enter()
        self._budget.spend(pod, wanted)
        possible &= self._end.fits_requests(pod) & (self._end.slots >= 1)
        possible &= self._end.fits_peak(pod, arrays.options.headroom)
        if arrays.unhappy[pod]:
            load = self._end.shares_with(pod).max(axis=0, initial=0.0)
            possible &= load <= self._before[current] - arrays.options.relief + TOLERANCE
        return _least_loaded(arrays, self._end, pod, possible, self._at) if possible.any() else None

    def _lets_another_go(self, pod: int) -> bool:
        """Whether a stuck pod has room on this one's node once it has left."""
        current, arrays = int(self._arrays.current[pod]), self._arrays
        others = [other for other in self._waiting[current] if other in self._stuck]
        free = self._now.free[:, current] + arrays.request[:, pod]
        fits = (free[:, None] >= arrays.least_free[:, others]).all(axis=0)
        return bool(fits.any()) and bool(self._now.slots[current] >= 0)
