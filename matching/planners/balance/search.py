"""Local search: single moves until none pays, then exchanges of two pods, then whoever may as well go home; where the
cluster is small, again from forced moves.

Every step lowers the objective by more than what it adds to what is owed for moves, so it ends, and never worse than
it began. Pods that have no node yet disturb nobody and owe nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.planners.balance.move_filter import MoveFilter
from matching.planners.balance.state import LEAST_GAIN, BalanceState, MoveCosts

_MOST_ROUNDS = 12

_ROUNDS_IF_LARGE = 2

_SWAPS_IF_LARGE = 1
"""From each of the hottest nodes, where there are many nodes."""

_PARTNERS = 32
"""The coldest nodes whose pods a hot one may exchange with, where there are many nodes."""

_SWAP_TRIES = 8


class BalanceSearch:
    def __init__(self, state: BalanceState, filter_: MoveFilter, costs_: MoveCosts) -> None:
        self._state, self._filter, self._costs = state, filter_, costs_
        self._current = state.prepared.arrays.current
        self._descent = Descent(state, filter_, costs_)
        self._forced = ForcedMoves(state, filter_, costs_, self._improve)
        self._large = state.number > FEW

    def place(self, pods: Ints) -> None:
        """Each in turn where it makes the objective smallest; whom no node can take stays without."""
        every = np.arange(len(self._state.counted))[None, :]
        for pod in pods.tolist() if every.size else []:
            only = np.array([pod])
            costs = np.where(self._filter.possible(only, every), self._state.changes(only, every), np.inf)[0]
            order = np.argsort(costs, kind="stable")[: int(np.isfinite(costs).sum())].tolist()
            target = next((node for node in order if self._filter.allows(pod, node)), None)
            if target is not None:
                self._filter.move(pod, target)

    def run(self) -> None:
        self._improve()
        if not self._large:
            self._forced.run()

    def _improve(self) -> None:
        for _ in range(_ROUNDS_IF_LARGE if self._large else _MOST_ROUNDS):
            self._descent.run()
            swapped = self._swap()
            returned = self._return_to_current()
            if not (swapped or returned):
                return

    def _swap(self) -> bool:
        sources = np.flatnonzero(self._state.sources())
        hottest = sources[np.argsort(-self._state.heat()[sources], kind="stable")][:FEW]
        progress = False
        most = _SWAPS_IF_LARGE if self._large else len(self._current)
        for node in hottest.tolist():
            swaps = 0
            while swaps < most and self._best_swap(node):
                swaps += 1
            progress |= swaps > 0
        return progress

    def _best_swap(self, source: int) -> bool:
        state = self._state
        ours = self._filter.affordable(np.flatnonzero(state.movable & (state.at == source)))
        theirs = self._partners(source, ours)
        if not len(ours) or not len(theirs):
            return False
        there = np.broadcast_to(state.at[theirs], (len(ours), len(theirs)))
        costs = state.swap_changes(ours, theirs) + self._costs.added_cost(state, ours, there)
        costs += self._costs.added_cost(state, theirs, np.full((len(theirs), 1), source))[:, 0]
        costs[~self._filter.swappable(source, ours, theirs)] = np.inf
        return any(
            self._filter.swap(int(ours[place // len(theirs)]), int(theirs[place % len(theirs)]))
            for place in _smallest(costs, _SWAP_TRIES).tolist()
        )

    def _partners(self, source: int, ours: Ints) -> Ints:
        state = self._state
        node = state.counted & self._filter.reachable(ours)
        node[source] = False
        if self._large:
            warmth = np.where(node, state.weights @ state.load, np.inf)
            node[np.argsort(warmth, kind="stable")[_PARTNERS:]] = False
        pods = np.flatnonzero(state.movable & (state.at != NOWHERE))
        return self._filter.affordable(pods[node[state.at[pods]]])

    def _return_to_current(self) -> bool:
        """A pod whose move has become worth less than it owes goes back; one return can make another one wrong."""
        state = self._state
        pods = np.flatnonzero(state.movable & (self._current != NOWHERE) & (state.at != self._current))
        progress = False
        for pod in pods[self._better_on_current(pods)].tolist():
            if self._better_on_current(np.array([pod]))[0] and self._filter.allows(pod, int(self._current[pod])):
                self._filter.move(pod, int(self._current[pod]))
                progress = True
        return progress

    def _better_on_current(self, pods: Ints) -> Mask:
        current = self._current[pods][:, None]
        costs = self._state.changes(pods, current) + self._costs.added_cost(self._state, pods, current)
        better: Mask = costs[:, 0] < -LEAST_GAIN
        return better


def _smallest(values: Floats, number: int) -> Ints:
    """Flat places of the values that are worth having, the smallest first, ties by place."""
    flat = values.ravel()
    places = np.flatnonzero(flat < -LEAST_GAIN)
    if len(places) > number:
        limit = np.partition(flat[places], number - 1)[number - 1]
        places = places[flat[places] <= limit]
    return places[np.argsort(flat[places], kind="stable")][:number]


FEW = 64
"""Up to so many nodes all are looked at in every way; beyond, so many of the hottest at a time."""

_TARGETS = 32
"""The coldest nodes that are weighed for a pod."""

_MOST_SWEEPS = 2

_PARTS_OF_BUDGET = 16

_TRIES = 8


class Descent:
    def __init__(self, state: BalanceState, moves: MoveFilter, costs: MoveCosts) -> None:
        self._state, self._moves, self._costs = state, moves, costs
        self._nodes = len(state.counted)
        self._limit = state.prepared.problem.options.max_moves

    def run(self) -> None:
        sweeps = 0
        while self._sweep():
            sweeps += 1
            if sweeps == _MOST_SWEEPS and self._nodes > FEW:
                return

    def _sweep(self) -> bool:
        """A node without a worthwhile move sleeps until all others do."""
        state, progress = self._state, False
        awake = state.sources()
        while awake.any():
            hot = np.argsort(np.where(awake, -state.heat(), np.inf), kind="stable")[:FEW]
            hot = hot[awake[hot]]
            round_ = _DescentRound(state, self._moves, self._costs, hot)
            if round_.run(self._most()):
                progress = True
                awake[hot] = round_.hopeful[hot]
            else:
                awake[hot] = False
        return progress

    def _most(self) -> int:
        """Under a budget the best few of a round, so that it is not spent on what merely comes first."""
        return self._nodes if self._limit is None else max(1, self._limit // _PARTS_OF_BUDGET)


class _DescentRound:
    """The pods of some nodes weighed against their targets at once. Each node takes part in at most one move, since
    after it the figures of that node are old."""

    def __init__(self, state: BalanceState, moves: MoveFilter, costs: MoveCosts, sources: Ints) -> None:
        self._state, self._moves, self._costs = state, moves, costs
        self._touched = np.zeros(len(state.counted), dtype=bool)
        self.hopeful: Mask = np.zeros(len(state.counted), dtype=bool)
        """Nodes with a move that seemed worthwhile, made or not."""
        on_source = np.zeros(len(state.counted) + 1, dtype=bool)
        on_source[sources] = True
        self._pods = moves.affordable(np.flatnonzero(state.movable & on_source[state.at]))
        self._targets = moves.targets(self._pods, _TARGETS)
        possible = moves.possible(self._pods, self._targets)
        gains = -state.changes(self._pods, self._targets) - costs.added_cost(state, self._pods, self._targets)
        self._gains = np.where(possible, gains, -np.inf)

    def run(self, most: int) -> int:
        """The number of moves made."""
        if not self._gains.size:
            return 0
        every = np.arange(len(self._pods))
        best = self._gains.argmax(axis=1)
        gained = self._gains[every, best]
        promising = np.flatnonzero(gained > LEAST_GAIN)
        self.hopeful[self._state.at[self._pods[promising]]] = True
        made = 0
        rows = promising[np.argsort(-gained[promising], kind="stable")]
        for row, source in zip(rows.tolist(), self._state.at[self._pods[rows]].tolist(), strict=True):
            if not self._touched[source]:
                made += self._move(row, source)
                if made == most:
                    break
        return made

    def _move(self, row: int, source: int) -> bool:
        pod, targets = int(self._pods[row]), self._targets[row]
        self._gains[row, self._touched[targets]] = -np.inf
        for _ in range(_TRIES):
            column = int(self._gains[row].argmax())
            target = int(targets[column])
            if not self._gains[row, column] > LEAST_GAIN:
                return False
            if self._moves.allows(pod, target):
                self._moves.move(pod, target)
                self._touched[[source, target]] = True
                return True
            self._gains[row, column] = -np.inf
        return False


_FORCED_TRIES = 32
"""So many in a row that lead nowhere are enough."""

_FORCED_PODS = 1024
"""Tries times pods: where there are many pods a try takes long, so there are fewer, and none beyond this."""

_FORCED_ROUNDS = 4
"""So many times `_TRIES` in all."""


class ForcedMoves:
    def __init__(
        self, state: BalanceState, filter_: MoveFilter, costs_: MoveCosts, improve: Callable[[], None]
    ) -> None:
        """`settle` searches on from where the board is."""
        self._state, self._filter, self._costs, self._improve = state, filter_, costs_, improve

    def run(self) -> None:
        """Until none of the cheapest moves leads on, or the tries are used up."""
        in_a_row = min(_FORCED_TRIES, _FORCED_PODS // max(1, int(self._state.movable.sum())))
        left = _FORCED_ROUNDS * in_a_row
        while left > 0:
            moves = self._cheapest_moves()[: min(left, in_a_row)]
            place = next((at for at, (pod, target) in enumerate(moves) if self._improves(pod, target)), None)
            if place is None:
                return
            left -= place + 1

    def _improves(self, pod: int, target: int) -> bool:
        """The pod is held at the target while the others settle; all go back if that ends no better."""
        if not self._filter.allows(pod, target):
            return False
        state, before, at = self._state, self._total(), self._state.at.copy()
        self._filter.move(pod, target)
        state.movable[pod] = False
        self._improve()
        state.movable[pod] = True
        if self._total() < before - LEAST_GAIN:
            self._improve()
            return True
        for moved in np.flatnonzero(state.at != at).tolist():
            self._filter.move(moved, int(at[moved]))
        return False

    def _cheapest_moves(self) -> list[tuple[int, int]]:
        """Pods and targets: every pod's cheapest, from the hottest nodes first, then the others by cost."""
        state = self._state
        pods = self._filter.affordable(np.flatnonzero(state.movable & (state.at != NOWHERE)))
        every = np.broadcast_to(np.arange(len(state.counted)), (len(pods), len(state.counted)))
        costs = state.changes(pods, every) + self._costs.added_cost(state, pods, every)
        costs[~self._filter.possible(pods, every)] = np.inf
        if not costs.size:
            return []
        cheapest = np.zeros(costs.shape, dtype=bool)
        cheapest[np.arange(len(pods)), costs.argmin(axis=1)] = True
        heat = np.where(cheapest, -state.heat()[state.at[pods]][:, None], np.inf)
        order = np.lexsort((costs.ravel(), heat.ravel()))
        rows, columns = np.unravel_index(order[np.isfinite(costs.ravel()[order])], costs.shape)
        return list(zip(pods[rows].tolist(), columns.tolist(), strict=True))

    def _total(self) -> float:
        state = self._state
        pods = np.arange(len(state.at))
        return state.value() + float(self._costs.cost_at(state, pods, state.at).sum())
