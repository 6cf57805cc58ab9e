"""A way out of dead ends: one move is forced although it costs, the search goes on around it, and the result is kept
if it is better. So it finds what needs three moves or more at once, as two small pods for a large one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from matching.arrays import NOWHERE
from matching.planners.balance.board import Board
from matching.planners.balance.gate import Gate
from matching.planners.balance.terms import LEAST_GAIN, Terms

_TRIES = 32
"""So many in a row that lead nowhere are enough."""
_PODS = 1024
"""Tries times pods: where there are many pods a try takes long, so there are fewer, and none beyond this."""
_ROWS = 4
"""So many times `_TRIES` in all."""


class Kicks:
    def __init__(self, board: Board, gate: Gate, terms: Terms, settle: Callable[[], None]) -> None:
        """`settle` searches on from where the board is."""
        self._board, self._gate, self._terms, self._settle = board, gate, terms, settle

    def run(self) -> None:
        """Until none of the cheapest moves leads on, or the tries are used up."""
        in_a_row = min(_TRIES, _PODS // max(1, int(self._board.movable.sum())))
        left = _ROWS * in_a_row
        while left > 0:
            moves = self._moves()[: min(left, in_a_row)]
            place = next((at for at, (pod, target) in enumerate(moves) if self._leads_on(pod, target)), None)
            if place is None:
                return
            left -= place + 1

    def _leads_on(self, pod: int, target: int) -> bool:
        """The pod is held at the target while the others settle; all go back if that ends no better."""
        if not self._gate.lets(pod, target):
            return False
        board, before, at = self._board, self._total(), self._board.at.copy()
        self._gate.go(pod, target)
        board.movable[pod] = False
        self._settle()
        board.movable[pod] = True
        if self._total() < before - LEAST_GAIN:
            self._settle()
            return True
        for moved in np.flatnonzero(board.at != at).tolist():
            self._gate.go(moved, int(at[moved]))
        return False

    def _moves(self) -> list[tuple[int, int]]:
        """Pods and targets: every pod's cheapest, from the hottest nodes first, then the others by cost."""
        board = self._board
        pods = self._gate.affordable(np.flatnonzero(board.movable & (board.at != NOWHERE)))
        every = np.broadcast_to(np.arange(len(board.counted)), (len(pods), len(board.counted)))
        costs = board.changes(pods, every) + self._terms.due(board, pods, every)
        costs[~self._gate.possible(pods, every)] = np.inf
        if not costs.size:
            return []
        cheapest = np.zeros(costs.shape, dtype=bool)
        cheapest[np.arange(len(pods)), costs.argmin(axis=1)] = True
        heat = np.where(cheapest, -board.heat()[board.at[pods]][:, None], np.inf)
        order = np.lexsort((costs.ravel(), heat.ravel()))
        rows, columns = np.unravel_index(order[np.isfinite(costs.ravel()[order])], costs.shape)
        return list(zip(pods[rows].tolist(), columns.tolist(), strict=True))

    def _total(self) -> float:
        board = self._board
        pods = np.arange(len(board.at))
        return board.value() + float(self._terms.owed(board, pods, board.at).sum())
