"""Local search: single moves until none pays, then exchanges of two pods, then pods that may as well go back. In a
small cluster it continues from forced moves.

Every step lowers the objective by more than it adds to the cost of the moves, so the search never ends worse than it
began. It ends because the descent goes on only while this total falls, and everything else is counted. Placing pending
pods has no cost.
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
"""From each of the hottest nodes, when there are many nodes."""
_PARTNERS = 32
"""The coldest nodes whose pods a hot node may exchange with, when there are many nodes."""
_SWAP_TRIES = 8
FEW = 64
"""Up to this many nodes the search is complete; beyond, it looks at this many of the hottest nodes at a time."""
_TARGETS = 32
"""The coldest nodes that are compared for a pod."""
_MOST_SWEEPS = 2
_PARTS_OF_BUDGET = 16
_TRIES = 8

_FORCED_TRIES = 32
"""The search ends after this many forced moves in a row without improvement."""
_FORCED_PODS = 1024
"""Tries times pods: with many pods a try takes long, so there are fewer, and none beyond this."""
_FORCED_ROUNDS = 4
"""The total is this many times `_FORCED_TRIES`."""


class BalanceSearch:
    def __init__(self, state: BalanceState, move_filter: MoveFilter, move_costs: MoveCosts) -> None:
        self._state, self._filter, self._costs = state, move_filter, move_costs
        self._current = state.prepared.arrays.current
        self._descent = Descent(state, move_filter, move_costs)
        self._forced = ForcedMoves(state, move_filter, move_costs, self._improve)
        self._large = state.number > FEW

    def place(self, pods: Ints) -> None:
        """Each pod in turn where it makes the objective smallest; a pod that no node can take stays pending."""
        every = np.arange(len(self._state.counted))[None, :]
        for pod in pods.tolist() if every.size else []:
            only = np.array([pod])
            costs = np.where(self._filter.possible(only, every), self._state.changes(only, every), np.inf)[0]
            order = np.argsort(costs, kind="stable")[: int(np.isfinite(costs).sum())].tolist()
            target = next((node for node in order if self._filter.allows(pod, node)), None)
            if target is not None:
                self._filter.move(pod, target)

    def run(self) -> None:
        if not len(self._state.counted):
            return
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
            self._filter.swap(int(ours[index // len(theirs)]), int(theirs[index % len(theirs)]))
            for index in _smallest(costs, _SWAP_TRIES).tolist()
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
        """A pod whose move is no longer worth its cost goes back. One return can make another one wrong."""
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
    """Flat indices of the values that are a gain, the smallest first, ties by index."""
    flat = values.ravel()
    found = np.flatnonzero(flat < -LEAST_GAIN)
    if len(found) > number:
        limit = np.partition(flat[found], number - 1)[number - 1]
        found = found[flat[found] <= limit]
    return found[np.argsort(flat[found], kind="stable")][:number]


class Descent:
    """Single moves from the hottest nodes, always the one that gains most."""

    def __init__(self, state: BalanceState, move_filter: MoveFilter, move_costs: MoveCosts) -> None:
        self._state, self._filter, self._costs = state, move_filter, move_costs
        self._nodes = len(state.counted)
        self._limit = state.prepared.problem.options.max_moves

    def run(self) -> None:
        """Ends: every sweep but the last lowers the total, which is a function of the placement alone."""
        sweeps, before = 0, self._costs.total(self._state)
        while self._sweep() and (after := self._costs.total(self._state)) < before:
            sweeps, before = sweeps + 1, after
            if sweeps == _MOST_SWEEPS and self._nodes > FEW:
                return

    def _sweep(self) -> bool:
        """A node without a worthwhile move is skipped until no other node has one either. At most one round for each
        pod and node; the next sweep continues."""
        state, progress = self._state, False
        active = state.sources()
        for _ in range(len(state.at) + self._nodes):
            if not active.any():
                break
            hot = np.argsort(np.where(active, -state.heat(), np.inf), kind="stable")[:FEW]
            hot = hot[active[hot]]
            moves = _DescentRound(state, self._filter, self._costs, hot)
            if moves.run(self._most()):
                progress = True
                active[hot] = moves.hopeful[hot]
            else:
                active[hot] = False
        return progress

    def _most(self) -> int:
        """With a budget only the best moves of a round, so that it is not spent on the first ones found."""
        return self._nodes if self._limit is None else max(1, self._limit // _PARTS_OF_BUDGET)


class _DescentRound:
    """The pods of some nodes compared with their targets at once. Each node takes part in at most one move, because its
    figures are outdated after it. The mean is outdated, too, so a gain is computed again after the first move."""

    def __init__(self, state: BalanceState, move_filter: MoveFilter, move_costs: MoveCosts, sources: Ints) -> None:
        self._state, self._filter, self._costs = state, move_filter, move_costs
        self._touched = np.zeros(len(state.counted), dtype=bool)
        self.hopeful: Mask = np.zeros(len(state.counted), dtype=bool)
        """Nodes with a move that seemed worthwhile, made or not."""
        on_source = np.zeros(len(state.counted) + 1, dtype=bool)
        on_source[sources] = True
        self._pods = move_filter.affordable(np.flatnonzero(state.movable & on_source[state.at]))
        self._targets = move_filter.targets(self._pods, _TARGETS)
        possible = move_filter.possible(self._pods, self._targets)
        gains = -state.changes(self._pods, self._targets) - move_costs.added_cost(state, self._pods, self._targets)
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
            if self._still_gains(pod, target) and self._filter.allows(pod, target):
                self._filter.move(pod, target)
                self._touched[[source, target]] = True
                return True
            self._gains[row, column] = -np.inf
        return False

    def _still_gains(self, pod: int, target: int) -> bool:
        """Where nodes differ in size, the moves before this one in the round have changed the mean."""
        if not self._touched.any():
            return True
        only, there = np.array([pod]), np.array([[target]])
        change = self._state.changes(only, there) + self._costs.added_cost(self._state, only, there)
        return bool(change[0, 0] < -LEAST_GAIN)


class ForcedMoves:
    """A way out of local minima: one move is forced although it costs, the search continues, and the result is kept if
    it is better. This finds combinations of three or more moves, such as two small pods for a large one."""

    def __init__(
        self, state: BalanceState, move_filter: MoveFilter, move_costs: MoveCosts, improve: Callable[[], None]
    ) -> None:
        """`improve` continues the search from the current state."""
        self._state, self._filter, self._costs, self._improve = state, move_filter, move_costs, improve

    def run(self) -> None:
        """Until none of the cheapest moves improves the result, or the tries are used up."""
        in_a_row = min(_FORCED_TRIES, _FORCED_PODS // max(1, int(self._state.movable.sum())))
        left = _FORCED_ROUNDS * in_a_row
        while left > 0:
            moves = self._cheapest_moves()[: min(left, in_a_row)]
            found = next((at for at, (pod, target) in enumerate(moves) if self._improves(pod, target)), None)
            if found is None:
                return
            left -= found + 1

    def _improves(self, pod: int, target: int) -> bool:
        """The pod stays on the target while the others move; all go back if the result is not better."""
        if not self._filter.allows(pod, target):
            return False
        state, before, at = self._state, self._costs.total(self._state), self._state.at.copy()
        self._filter.move(pod, target)
        state.movable[pod] = False
        self._improve()
        state.movable[pod] = True
        if self._costs.total(state) < before - LEAST_GAIN:
            self._improve()
            return True
        for moved in np.flatnonzero(state.at != at).tolist():
            self._filter.move(moved, int(at[moved]))
        return False

    def _cheapest_moves(self) -> list[tuple[int, int]]:
        """Pods and targets: the cheapest move of every pod, from the hottest nodes first, then the others by cost."""
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
