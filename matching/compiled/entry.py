"""All compiled loops under one name, for `loading`. Needs numba."""

from __future__ import annotations

from matching.compiled.move_order import NOTHING, carry_out, proceed, push
from matching.compiled.ranks import rank_own_nodes, rank_targets
from matching.compiled.serial_choice import choose_in_turn, refresh, refresh_all

__all__ = [
    "NOTHING",
    "carry_out",
    "choose_in_turn",
    "proceed",
    "push",
    "rank_own_nodes",
    "rank_targets",
    "refresh",
    "refresh_all",
]
