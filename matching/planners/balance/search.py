"""Local search: single moves until none pays, then exchanges of two pods, then whoever may as well go home; where the
cluster is small, again from forced moves.

Every step lowers the objective by more than what it adds to what is owed for moves, so it ends, and never worse than
it began. Pods that have no node yet disturb nobody and owe nothing.
"""

from __future__ import annotations

import numpy as np

from matching.arrays import NOWHERE, Floats, Ints, Mask
from matching.planners.balance.board import Board
from matching.planners.balance.descent import FEW, Descent
from matching.planners.balance.gate import Gate
from matching.planners.balance.kicks import Kicks
from matching.planners.balance.terms import LEAST_GAIN, Terms

_MOST_ROUNDS = 12
_ROUNDS_IF_LARGE = 2
_SWAPS_IF_LARGE = 1
"""From each of the hottest nodes, where there are many nodes."""
_PARTNERS = 32
"""The coldest nodes whose pods a hot one may exchange with, where there are many nodes."""
_TRIES = 8


class Search:
    def __init__(self, board: Board, gate: Gate, terms: Terms) -> None:
        self._board, self._gate, self._terms = board, gate, terms
        self._home = board.case.arrays.home
        self._descent = Descent(board, gate, terms)
        self._kicks = Kicks(board, gate, terms, self._settle)
        self._large = board.number > FEW

    def place(self, pods: Ints) -> None:
        """Each in turn where it makes the objective smallest; whom no node can take stays without."""
        every = np.arange(len(self._board.counted))[None, :]
        for pod in pods.tolist() if every.size else []:
            only = np.array([pod])
            costs = np.where(self._gate.possible(only, every), self._board.changes(only, every), np.inf)[0]
            order = np.argsort(costs, kind="stable")[: int(np.isfinite(costs).sum())].tolist()
            target = next((node for node in order if self._gate.lets(pod, node)), None)
            if target is not None:
                self._gate.go(pod, target)

    def run(self) -> None:
        self._settle()
        if not self._large:
            self._kicks.run()

    def _settle(self) -> None:
        for _ in range(_ROUNDS_IF_LARGE if self._large else _MOST_ROUNDS):
            self._descent.run()
            swapped = self._swap()
            returned = self._return_home()
            if not (swapped or returned):
                return

    def _swap(self) -> bool:
        sources = np.flatnonzero(self._board.sources())
        hottest = sources[np.argsort(-self._board.heat()[sources], kind="stable")][:FEW]
        progress = False
        most = _SWAPS_IF_LARGE if self._large else len(self._home)
        for node in hottest.tolist():
            swaps = 0
            while swaps < most and self._best_swap(node):
                swaps += 1
            progress |= swaps > 0
        return progress

    def _best_swap(self, source: int) -> bool:
        board = self._board
        ours = self._gate.affordable(np.flatnonzero(board.movable & (board.at == source)))
        theirs = self._partners(source, ours)
        if not len(ours) or not len(theirs):
            return False
        there = np.broadcast_to(board.at[theirs], (len(ours), len(theirs)))
        costs = board.swap_changes(ours, theirs) + self._terms.due(board, ours, there)
        costs += self._terms.due(board, theirs, np.full((len(theirs), 1), source))[:, 0]
        costs[~self._gate.swappable(source, ours, theirs)] = np.inf
        return any(
            self._gate.swap(int(ours[place // len(theirs)]), int(theirs[place % len(theirs)]))
            for place in _smallest(costs, _TRIES).tolist()
        )

    def _partners(self, source: int, ours: Ints) -> Ints:
        board = self._board
        node = board.counted & self._gate.reachable(ours)
        node[source] = False
        if self._large:
            warmth = np.where(node, board.weights @ board.load, np.inf)
            node[np.argsort(warmth, kind="stable")[_PARTNERS:]] = False
        pods = np.flatnonzero(board.movable & (board.at != NOWHERE))
        return self._gate.affordable(pods[node[board.at[pods]]])

    def _return_home(self) -> bool:
        """A pod whose move has become worth less than it owes goes back; one return can make another one wrong."""
        board = self._board
        pods = np.flatnonzero(board.movable & (self._home != NOWHERE) & (board.at != self._home))
        progress = False
        for pod in pods[self._better_at_home(pods)].tolist():
            if self._better_at_home(np.array([pod]))[0] and self._gate.lets(pod, int(self._home[pod])):
                self._gate.go(pod, int(self._home[pod]))
                progress = True
        return progress

    def _better_at_home(self, pods: Ints) -> Mask:
        home = self._home[pods][:, None]
        costs = self._board.changes(pods, home) + self._terms.due(self._board, pods, home)
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
