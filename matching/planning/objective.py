"""Whether a placement is better than leaving the running pods where they are, and which of several is preferred.

A placement that is not better than doing nothing is not worth its moves. Among the others, the one that helps the most
unhappy pods is preferred; among those that help as many, the one with the least overload, where each move counts as
much overload as the relief that a move should bring.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints
from matching.model.arrays import Arrays
from matching.model.ledger import Ledger
from matching.preferences import DECIMALS
from matching.problem import TOLERANCE


@dataclass(frozen=True, slots=True)
class Score:
    unplaced: tuple[int, ...]
    overload: float
    """Sum over nodes and axes of the peak share above 1 - headroom."""
    unhappy_overloaded: int
    """Unhappy pods on nodes without headroom."""
    load_of_unhappy: Floats
    """Of the node of each unhappy pod, in the order of the pods; infinite for a dumped pod."""


def score(arrays: Arrays, at: Ints) -> Score:
    shares = Ledger(arrays, at).shares()
    limit = 1 - arrays.options.headroom
    load = shares.max(axis=0, initial=0.0)
    ends = at[arrays.unhappy]
    load_of_unhappy = np.where(ends == NOWHERE, np.inf, load[ends])
    return Score(
        unplaced=unplaced(arrays, at),
        overload=float((shares - limit).clip(min=0.0).sum()),
        unhappy_overloaded=int((load_of_unhappy > limit + TOLERANCE).sum()),
        load_of_unhappy=load_of_unhappy,
    )


def unplaced(arrays: Arrays, at: Ints) -> tuple[int, ...]:
    """Priorities of the pending pods without a node, highest first; of two such tuples the smaller one is better."""
    pods = np.flatnonzero(arrays.pending & (at == NOWHERE)).tolist()
    return tuple(sorted((arrays.pods[pod].priority for pod in pods), reverse=True))


def helped(before: Score, after: Score, relief: float) -> int:
    """Unhappy pods that end on a clearly less loaded node, less those that end on a clearly more loaded one."""
    change = before.load_of_unhappy - after.load_of_unhappy
    return int((change >= relief - TOLERANCE).sum()) - int((change <= -max(relief, TOLERANCE)).sum())


def is_better(before: Score, after: Score, relief: float) -> bool:
    if after.unplaced != before.unplaced:
        return after.unplaced < before.unplaced
    if after.overload > before.overload + TOLERANCE:
        return False
    return (
        after.overload < before.overload - TOLERANCE
        or after.unhappy_overloaded < before.unhappy_overloaded
        or helped(before, after, relief) > 0
    )


def price(before: Score, after: Score, moves: int, relief: float) -> tuple[tuple[int, ...], int, float, int]:
    """Of two placements that are better than doing nothing, the one with the smaller price is preferred."""
    overload = round(after.overload + relief * moves, DECIMALS)
    return after.unplaced, -helped(before, after, relief), overload, moves


def why_not_better(before: Score, after: Score) -> str:
    if after.unplaced > before.unplaced:
        return "it would leave more, or more important, pending pods without a node"
    if after.overload > before.overload + TOLERANCE:
        return f"it would add overload ({before.overload:.2f} to {after.overload:.2f})"
    if len(before.load_of_unhappy):
        return "it would neither lower the overload nor help an unhappy pod"
    return "no pod is unhappy, and it would not lower the overload"


def overload_added(arrays: Arrays, shares: Floats, shares_after: Floats) -> bool:
    limit = 1 - arrays.options.headroom
    excess, excess_after = (np.clip(each - limit, 0.0, None).sum() for each in (shares, shares_after))
    return bool(excess_after > excess + TOLERANCE)
