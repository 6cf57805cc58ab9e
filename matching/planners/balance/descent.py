"""Single moves: from the hottest nodes, again and again, what gains most."""

from __future__ import annotations

import numpy as np

from matching.arrays import Ints, Mask
from matching.planners.balance.board import Board
from matching.planners.balance.gate import Gate
from matching.planners.balance.terms import LEAST_GAIN, Terms

FEW = 64
"""Up to so many nodes all are looked at in every way; beyond, so many of the hottest at a time."""
_TARGETS = 32
"""The coldest nodes that are weighed for a pod."""
_MOST_SWEEPS = 2
_PARTS_OF_BUDGET = 16
_TRIES = 8


class Descent:
    def __init__(self, board: Board, gate: Gate, terms: Terms) -> None:
        self._board, self._gate, self._terms = board, gate, terms
        self._nodes = len(board.counted)
        self._limit = board.case.problem.options.max_moves

    def run(self) -> None:
        sweeps = 0
        while self._sweep():
            sweeps += 1
            if sweeps == _MOST_SWEEPS and self._nodes > FEW:
                return

    def _sweep(self) -> bool:
        """A node without a worthwhile move sleeps until all others do."""
        board, progress = self._board, False
        awake = board.sources()
        while awake.any():
            hot = np.argsort(np.where(awake, -board.heat(), np.inf), kind="stable")[:FEW]
            hot = hot[awake[hot]]
            moves = _Round(board, self._gate, self._terms, hot)
            if moves.run(self._most()):
                progress = True
                awake[hot] = moves.hopeful[hot]
            else:
                awake[hot] = False
        return progress

    def _most(self) -> int:
        """Under a budget the best few of a round, so that it is not spent on what merely comes first."""
        return self._nodes if self._limit is None else max(1, self._limit // _PARTS_OF_BUDGET)


class _Round:
    """The pods of some nodes weighed against their targets at once. Each node takes part in at most one move, since
    after it the figures of that node are old."""

    def __init__(self, board: Board, gate: Gate, terms: Terms, sources: Ints) -> None:
        self._board, self._gate, self._terms = board, gate, terms
        self._touched = np.zeros(len(board.counted), dtype=bool)
        self.hopeful: Mask = np.zeros(len(board.counted), dtype=bool)
        """Nodes with a move that seemed worthwhile, made or not."""
        on_source = np.zeros(len(board.counted) + 1, dtype=bool)
        on_source[sources] = True
        self._pods = gate.affordable(np.flatnonzero(board.movable & on_source[board.at]))
        self._targets = gate.targets(self._pods, _TARGETS)
        possible = gate.possible(self._pods, self._targets)
        gains = -board.changes(self._pods, self._targets) - terms.due(board, self._pods, self._targets)
        self._gains = np.where(possible, gains, -np.inf)

    def run(self, most: int) -> int:
        """The number of moves made."""
        if not self._gains.size:
            return 0
        every = np.arange(len(self._pods))
        best = self._gains.argmax(axis=1)
        gained = self._gains[every, best]
        promising = np.flatnonzero(gained > LEAST_GAIN)
        self.hopeful[self._board.at[self._pods[promising]]] = True
        made = 0
        rows = promising[np.argsort(-gained[promising], kind="stable")]
        for row, source in zip(rows.tolist(), self._board.at[self._pods[rows]].tolist(), strict=True):
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
            if self._gate.lets(pod, target):
                self._gate.go(pod, target)
                self._touched[[source, target]] = True
                return True
            self._gains[row, column] = -np.inf
        return False
