"""What `loading` hands out: the compiled loops under one name. Needs numba."""

from __future__ import annotations

from matching.compiled.kernels import choose_in_turn, refresh, refresh_all
from matching.compiled.liking import rank_targets, taste
from matching.compiled.sequence import NOTHING, carry_out, proceed, push

__all__ = [
    "NOTHING",
    "carry_out",
    "choose_in_turn",
    "proceed",
    "push",
    "rank_targets",
    "refresh",
    "refresh_all",
    "taste",
]
