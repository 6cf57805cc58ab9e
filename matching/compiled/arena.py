"""A case as the kernels need it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.arrays import NOWHERE, Arrays, Floats, Mask
from matching.candidates import Candidates
from matching.compiled.bundles import bundled
from matching.compiled.layout import SIZE, Blocks, Guests, Notes, Places, Ways
from matching.ledger import Ledger, headroom_steps
from matching.preferences import Preferences
from matching.problem import Availability
from matching.standing import Standing


@dataclass(frozen=True, slots=True)
class Arena:
    guests: Guests
    places: Places
    blocks: Blocks
    ways: Ways
    notes: Notes


@dataclass(frozen=True, slots=True)
class Ground:
    """What stays the same however often the pods choose."""

    arrays: Arrays
    candidates: Candidates
    preferences: Preferences
    guests: Guests
    blocks: Blocks

    def arena(self, ledger: Ledger, standing: Standing) -> Arena:
        """The kernels write to this ledger and this standing."""
        options = self.arrays.options
        places = Places(
            untouched=self.preferences.untouched,
            allocatable=self.arrays.allocatable,
            quotas=np.array([ledger.quota(step) for step in headroom_steps(options.headroom)]),
            free=ledger.free,
            load=ledger.load,
            slots=ledger.slots,
            used=standing.used,
            seen=standing.load,
        )
        fresh = {part: getattr(self.blocks, part).copy() for part in ("low", "room", "left", "most")}
        blocks = self.blocks._replace(**fresh)
        ways = Ways(options.availability is Availability.AFTER, options.inertia > 0)
        return Arena(self.guests, places, blocks, ways, _notes(blocks))


def ground(arrays: Arrays, candidates: Candidates, preferences: Preferences, asked: Mask) -> Ground:
    """For the pods that are asked; the others' rows mean nothing."""
    row, admitted, may_stay = candidates.table(np.flatnonzero(asked))
    calm = (arrays.home != NOWHERE) & ~arrays.unhappy
    guests = Guests(
        usage=arrays.usage,
        request=arrays.request,
        peak=arrays.peak,
        least_spare=arrays.least_spare,
        needs=_needs(arrays, asked),
        home=arrays.home,
        row=row,
        may_stay=may_stay,
        at_ease=arrays.at_ease,
        inertia=np.where(calm, arrays.options.inertia, 0.0),
    )
    blocks = bundled(preferences.room, admitted, steps=len(headroom_steps(arrays.options.headroom)))
    return Ground(arrays, candidates, preferences, guests, blocks)


def _notes(blocks: Blocks) -> Notes:
    nodes = len(blocks.block)
    return Notes(
        bounds=np.zeros(len(blocks.first)),
        fitting=np.zeros(SIZE, dtype=bool),
        possible=np.zeros(nodes, dtype=bool),
        worst=np.zeros(nodes),
    )


def _needs(arrays: Arrays, asked: Mask) -> Floats:
    """What is left has to be at least this: peaks have to be exceeded, so the next larger number is asked for."""
    pods = np.flatnonzero(asked)
    exceeded = np.nextafter(arrays.least_spare[:, pods], np.inf)
    needs = np.zeros((len(arrays.pods), 2 * len(exceeded) + 1))
    needs[pods] = np.concatenate([arrays.least_free[:, pods], np.ones((1, len(pods))), exceeded]).T
    return needs
