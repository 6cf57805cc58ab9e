"""Local search: single moves until none is worthwhile, then exchanges of two pods, then whoever may as well
go home.

A change is made only when its gain is above its price and above what the noise of the measurements can feign. Pods
that have no node yet disturb nobody, so for them any gain is enough.
"""

from __future__ import annotations

import numpy as np

from matching.arrays import NOWHERE, Floats, Ints, Mask
from matching.planners.balance.board import Board
from matching.planners.balance.descent import FEW, LEAST_GAIN, Descent, Terms
from matching.planners.balance.gate import Gate
from matching.planners.balance.noise import swap_error

_MOST_ROUNDS = 12
_ROUNDS_IF_LARGE = 2
_PARTNERS = 32
"""The coldest nodes whose pods a hot one may exchange with, where there are many nodes."""
_TRIES = 8


class Search:
    def __init__(self, board: Board, gate: Gate, terms: Terms) -> None:
        self._board, self._gate, self._terms = board, gate, terms
        self._home = board.case.arrays.home
        self._descent = Descent(board, gate, terms)
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
        for _ in range(_ROUNDS_IF_LARGE if self._large else _MOST_ROUNDS):
            self._descent.run()
            swapped = self._swap()
            if not (self._return_home() or swapped):
                return

    def _swap(self) -> bool:
        sources = np.flatnonzero(self._board.sources())
        hottest = sources[np.argsort(-self._board.heat()[sources], kind="stable")][:FEW]
        progress = False
        for node in hottest.tolist():
            while self._best_swap(node):
                progress = True
        return progress

    def _best_swap(self, source: int) -> bool:
        board = self._board
        ours = self._gate.affordable(np.flatnonzero(board.movable & (board.at == source)))
        theirs = self._partners(source, ours)
        if not len(ours) or not len(theirs):
            return False
        prices = self._terms.prices(board, ours)[:, None] + self._terms.prices(board, theirs)
        gains = -board.swap_changes(ours, theirs) - prices
        gains[~self._gate.swappable(source, ours, theirs)] = -np.inf
        for place in _largest(gains, _TRIES).tolist():
            pod, partner = int(ours[place // len(theirs)]), int(theirs[place % len(theirs)])
            errors = max(self._terms.errors[pod], self._terms.errors[partner])
            sure = gains.flat[place] - errors * swap_error(board, pod, partner)
            if sure > LEAST_GAIN and self._gate.swap(pod, partner):
                return True
        return False

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
        """A pod whose move has become worth less than its price goes back; one return can make another one wrong."""
        pods = np.flatnonzero((self._home != NOWHERE) & (self._board.at != self._home))
        progress = False
        for pod in pods[self._better_at_home(pods)].tolist():
            if self._better_at_home(np.array([pod]))[0] and self._gate.lets(pod, int(self._home[pod])):
                self._gate.go(pod, int(self._home[pod]))
                progress = True
        return progress

    def _better_at_home(self, pods: Ints) -> Mask:
        changes = self._board.changes(pods, self._home[pods][:, None])[:, 0]
        better: Mask = changes < self._terms.price[pods] - LEAST_GAIN
        return better


def _largest(values: Floats, number: int) -> Ints:
    """Flat places of the largest values worth having, the largest first, ties by place."""
    flat = values.ravel()
    places = np.flatnonzero(flat > LEAST_GAIN)
    if len(places) > number:
        limit = np.partition(flat[places], len(places) - number)[len(places) - number]
        places = places[flat[places] >= limit]
    return places[np.argsort(-flat[places], kind="stable")][:number]
