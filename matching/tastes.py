"""What happy and pending pods like best, found for all of them at once: their lists do not depend on a turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.arrays import NOWHERE, Arrays, Ints, Mask
from matching.candidates import Candidates
from matching.preferences import DECIMALS, Preferences

_BLOCK_CELLS = 1 << 18


@dataclass(frozen=True, slots=True)
class Tastes:
    favourite: Ints
    """The node it likes best of those it may use, whatever is on them; NOWHERE when there is none or nobody asked."""
    held: Mask
    """Likes its own node best only because it is used to it."""
    place: Ints
    """Of its own node in its list, from 1; 0 when it has none."""


def tastes_of(arrays: Arrays, candidates: Candidates, preferences: Preferences, asked: Mask) -> Tastes:
    """`asked` pods must not be unhappy."""
    number = len(arrays.pods)
    tastes = Tastes(np.full(number, NOWHERE), np.zeros(number, dtype=bool), np.zeros(number, dtype=np.int64))
    if not arrays.nodes:
        return tastes
    pods = np.flatnonzero(asked)
    size = max(1, _BLOCK_CELLS // len(arrays.nodes))
    for start in range(0, len(pods), size):
        _fill(tastes, arrays, candidates, preferences, pods[start : start + size])
    return tastes


def _fill(tastes: Tastes, arrays: Arrays, candidates: Candidates, preferences: Preferences, pods: Ints) -> None:
    wishes = np.where(candidates.rows(pods), preferences.distances_of(pods), np.inf)
    nearest = wishes.argmin(axis=1)
    running = np.flatnonzero(arrays.home[pods] != NOWHERE)
    home = arrays.home[pods[running]]
    wishes[running, home] = np.round(wishes[running, home] - arrays.options.inertia, DECIMALS)
    best = wishes.argmin(axis=1)
    lists_one = np.isfinite(wishes[np.arange(len(pods)), best])
    tastes.favourite[pods] = np.where(lists_one, best, NOWHERE)
    tastes.held[pods[running]] = (best[running] == home) & (nearest[running] != home)
    own = wishes[running, home][:, None]
    before_home = np.arange(len(arrays.nodes)) < home[:, None]
    better = (wishes[running] < own) | ((wishes[running] == own) & before_home)
    tastes.place[pods[running]] = better.sum(axis=1) + 1
