"""What a move must earn: the price of moving the pod, and what noise leaves unknown about the two nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.arrays import NOWHERE, Floats, Ints
from matching.planners.balance.board import Board

LEAST_GAIN = 1e-12
"""Below it a gain is rounding."""


@dataclass(frozen=True, slots=True)
class Terms:
    """In units of the objective. Only running pods that end away from home owe anything."""

    price: Floats
    """Per pod."""
    doubt: Floats
    """Per node, for each pod that leaves or enters it."""

    def owed(self, board: Board, pods: Ints, at: Ints) -> Floats:
        """By each pod if it ended there; `at` has a place or a row of them per pod."""
        home, price = board.case.arrays.home[pods], self.price[pods]
        if at.ndim > 1:
            home, price = home[:, None], price[:, None]
        stays = (home == NOWHERE) | (at == NOWHERE) | (at == home)
        owed: Floats = np.where(stays, 0.0, price + self.doubt[home] + self.doubt[at])
        return owed

    def due(self, board: Board, pods: Ints, targets: Ints) -> Floats:
        """(pods, targets): how much more each would owe there than where it is."""
        return self.owed(board, pods, targets) - self.owed(board, pods, board.at[pods])[:, None]
