"""What happy and pending pods like best, found for all of them at once: their lists do not depend on a turn.

That is so as long as room means the room before anybody is matched (`Availability.BEFORE`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from matching.arrays import NOWHERE, Arrays, Floats, Ints, Mask
from matching.candidates import Candidates
from matching.compiled.arena import Ground
from matching.preferences import DECIMALS, Preferences

_BLOCK_CELLS = 1 << 18


@dataclass(frozen=True, slots=True)
class Tastes:
    """Of running pods that may stay where they are; nothing is said of others."""

    held: Mask
    """Likes its own node best only because it is used to it."""
    place: Ints
    """Of its own node in its list, from 1."""


def favourites_of(arrays: Arrays, candidates: Candidates, preferences: Preferences, asked: Mask) -> Ints:
    """By pod the node it likes best of those it may use, whatever is on them; NOWHERE when there is none or nobody
    asked. `asked` pods must not be unhappy."""
    favourites = np.full(len(arrays.pods), NOWHERE)
    for pods in _blocks(arrays, asked):
        wishes = np.where(candidates.rows(pods), preferences.distances_of(pods), np.inf)
        running = np.flatnonzero(arrays.home[pods] != NOWHERE)
        home = arrays.home[pods[running]]
        wishes[running, home] = np.round(wishes[running, home] - arrays.options.inertia, DECIMALS)
        best = wishes.argmin(axis=1)
        favourites[pods] = np.where(np.isfinite(wishes[np.arange(len(pods)), best]), best, NOWHERE)
    return favourites


def tastes_of(arrays: Arrays, candidates: Candidates, preferences: Preferences, asked: Mask) -> Tastes:
    """`asked` pods must not be unhappy."""
    tastes = _nothing(arrays)
    for pods in _blocks(arrays, asked & (arrays.home != NOWHERE)):
        far = np.where(candidates.rows(pods), preferences.distances_of(pods), np.inf)
        home = arrays.home[pods]
        plain = far[np.arange(len(pods)), home]
        own = np.round(plain - arrays.options.inertia, DECIMALS)
        place = _better(far, own, home).sum(axis=1) + 1
        staying = np.isfinite(own)
        tastes.place[pods] = np.where(staying, place, 0)
        tastes.held[pods] = staying & (place == 1) & _better(far, plain, home).any(axis=1)
    return tastes


def quick_tastes_of(kernels: ModuleType, ground: Ground, asked: Mask) -> Tastes:
    """The same, compiled; pods with soft wishes are asked in numpy."""
    arrays, tastes = ground.arrays, _nothing(ground.arrays)
    wishful = asked & arrays.choosy
    pods = np.flatnonzero(asked & ~wishful & (arrays.home != NOWHERE))
    kernels.taste(ground.blocks, ground.guests, pods, tastes.held, tastes.place)
    if wishful.any():
        some = tastes_of(arrays, ground.candidates, ground.preferences, wishful)
        return Tastes(np.where(wishful, some.held, tastes.held), np.where(wishful, some.place, tastes.place))
    return tastes


def _nothing(arrays: Arrays) -> Tastes:
    return Tastes(np.zeros(len(arrays.pods), dtype=bool), np.zeros(len(arrays.pods), dtype=np.int64))


def _blocks(arrays: Arrays, asked: Mask) -> Iterator[Ints]:
    pods = np.flatnonzero(asked)
    size = max(1, _BLOCK_CELLS // max(1, len(arrays.nodes)))
    for start in range(0, len(pods) if arrays.nodes else 0, size):
        yield pods[start : start + size]


def _better(wishes: Floats, own: Floats, home: Ints) -> Mask:
    """Which nodes come before the pod's own, if that reads as `own`."""
    earlier = np.arange(wishes.shape[1]) < home[:, None]
    better: Mask = (wishes < own[:, None]) | ((wishes == own[:, None]) & earlier)
    better[np.arange(len(home)), home] = False
    return better
