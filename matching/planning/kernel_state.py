"""A prepared problem in the form that the kernels use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.compiled.layout import SIZE, Blocks, ChoiceOptions, NodeArrays, PodArrays, Scratch
from matching.model.arrays import Arrays
from matching.model.candidates import Candidates
from matching.model.ledger import Ledger, headroom_steps
from matching.preferences import MatchedLoads, Preferences
from matching.problem import Availability


@dataclass(frozen=True, slots=True)
class KernelState:
    pods: PodArrays
    nodes: NodeArrays
    blocks: Blocks
    options: ChoiceOptions
    scratch: Scratch


@dataclass(frozen=True, slots=True)
class KernelInput:
    """The part that does not change when pods choose again."""

    arrays: Arrays
    candidates: Candidates
    preferences: Preferences
    pods: PodArrays
    blocks: Blocks

    def state(self, ledger: Ledger, matched: MatchedLoads) -> KernelState:
        """The kernels write to this ledger and these loads."""
        options = self.arrays.options
        nodes = NodeArrays(
            untouched=self.preferences.untouched,
            allocatable=self.arrays.allocatable,
            quotas=np.array([ledger.quota(step) for step in headroom_steps(options.headroom)]),
            free=ledger.free,
            load=ledger.load,
            slots=ledger.slots,
            used=matched.used,
            seen=matched.load,
        )
        fresh = {part: getattr(self.blocks, part).copy() for part in ("low", "room", "left", "most")}
        blocks = self.blocks._replace(**fresh)
        choice = ChoiceOptions(options.availability is Availability.AFTER, options.inertia > 0)
        return KernelState(self.pods, nodes, blocks, choice, _scratch(blocks))


def kernel_input(arrays: Arrays, candidates: Candidates, preferences: Preferences, asked: Mask) -> KernelInput:
    """For the `asked` pods; rows of other pods mean nothing."""
    row, admitted, may_stay = candidates.table(np.flatnonzero(asked))
    happy = (arrays.current != NOWHERE) & ~arrays.unhappy
    pods = PodArrays(
        usage=arrays.usual,
        request=arrays.request,
        peak=arrays.peak,
        least_spare=arrays.least_spare,
        needs=_needs(arrays, asked),
        current=arrays.current,
        row=row,
        may_stay=may_stay,
        headroom_exempt=arrays.headroom_exempt,
        inertia=np.where(happy, arrays.options.inertia, 0.0),
    )
    blocks = blocks_of(preferences.room, admitted, steps=len(headroom_steps(arrays.options.headroom)))
    return KernelInput(arrays, candidates, preferences, pods, blocks)


def _scratch(blocks: Blocks) -> Scratch:
    number = len(blocks.block)
    return Scratch(
        bounds=np.zeros(len(blocks.first)),
        fitting=np.zeros(SIZE, dtype=bool),
        possible=np.zeros(number, dtype=bool),
        worst=np.zeros(number),
    )


def _needs(arrays: Arrays, asked: Mask) -> Floats:
    """What a node must have left at least. Peaks have to be exceeded, so they use the next larger number."""
    listed = np.flatnonzero(asked)
    exceeded = np.nextafter(arrays.least_spare[:, listed], np.inf)
    needs = np.zeros((len(arrays.pods), 2 * len(exceeded) + 1))
    needs[listed] = np.concatenate([arrays.least_free[:, listed], np.ones((1, len(listed))), exceeded]).T
    return needs


def blocks_of(room: Floats, admitted: Mask, steps: int) -> Blocks:
    """Nodes in blocks with similar rooms, by halving along the widest axis. `room` is (axes, nodes), `admitted` (rows,
    nodes), `steps` the number of headroom steps. The kernel `refresh` fills in what is left. All arrays are
    C-contiguous: numba would compile again for another layout."""
    order = _halved(room)
    number = -(-len(order) // SIZE)
    members = np.concatenate([order, np.full(number * SIZE - len(order), NOWHERE)]).reshape(number, SIZE)
    block, position = np.empty_like(order), np.empty_like(order)
    block[order], position[order] = np.divmod(np.arange(len(order)), SIZE)
    empty = members == NOWHERE
    rooms = room[:, members]
    admitting = admitted[:, members] & ~empty
    needs = len(room) * (1 + steps) + 1
    blocks = Blocks(
        members=members,
        block=block,
        position=position,
        first=np.where(empty, len(order), members).min(axis=1),
        last=members.max(axis=1),
        low=np.where(empty, np.inf, rooms).min(axis=2),
        high=np.where(empty, -np.inf, rooms).max(axis=2),
        room=rooms.transpose(1, 0, 2),
        left=np.full((number, needs, SIZE), -np.inf),
        most=np.full((needs, number), -np.inf),
        admitted=admitting,
        admitting=admitting.sum(axis=2, dtype=np.int64),
    )
    return Blocks._make(np.ascontiguousarray(part) for part in blocks)


def _halved(room: Floats) -> Ints:
    """All nodes, block after block. Nodes with equal rooms stay in the order of their names, in which they fill up."""
    whole, parts = [np.arange(room.shape[1], dtype=np.int64)], []
    while whole:
        part = whole.pop()
        if len(part) <= SIZE:
            parts.append(part)
            continue
        axis = int(np.ptp(room[:, part], axis=1).argmax())
        ordered = part[np.argsort(room[axis, part], kind="stable")]
        middle = -(-len(ordered) // (2 * SIZE)) * SIZE
        whole += [ordered[middle:], ordered[:middle]]
    return np.concatenate(parts)
