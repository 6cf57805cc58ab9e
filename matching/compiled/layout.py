"""The arrays that the kernels use. Shapes are (axes, pods) or (axes, nodes) unless noted."""

from __future__ import annotations

from typing import NamedTuple

from matching.array_types import Floats, Ints, Mask

SIZE = 64
"""Nodes of a block. A pod looks at every block and into few of them, so the square root of the number of nodes would be
best; between 1,000 and 10,000 nodes this is close enough."""


class PodArrays(NamedTuple):
    usage: Floats
    request: Floats
    peak: Floats
    least_spare: Floats
    needs: Floats
    """(pods, needs): what `Blocks.left` must be at least: requests by axis, one slot, peaks by axis."""
    current: Ints
    row: Ints
    """By pod: its row of `Blocks.admitted`."""
    may_stay: Mask
    headroom_exempt: Mask
    inertia: Floats
    """By pod: how much less its current node costs."""


class NodeArrays(NamedTuple):
    """`free`, `load`, `slots`, `used` and `seen` change while pods choose."""

    untouched: Floats
    """Room before any pod chose; may be below 0."""
    allocatable: Floats
    quotas: Floats
    """(steps, axes, nodes): what peaks have to stay below, from full headroom to none."""
    free: Floats
    load: Floats
    slots: Ints
    used: Floats
    """Usage of the pods that have chosen."""
    seen: Floats
    """Loads as an unhappy pod sees them at its turn."""


class Blocks(NamedTuple):
    """The nodes in blocks of SIZE with similar rooms. A block that is too far or too full is skipped as a whole, and
    the compiler knows the number of iterations inside one. The last block is padded. `left` and `most` change as pods
    choose, and with `availability: after` also `room` and `low`."""

    members: Ints
    """(blocks, SIZE): the node at each position; NOWHERE for padding."""
    block: Ints
    """By node: its block, and its position there."""
    position: Ints
    first: Ints
    """The smallest node of each block, and the largest: ties go by name."""
    last: Ints
    low: Floats
    """(axes, blocks): the bounding box of the rooms of a block."""
    high: Floats
    room: Floats
    """(blocks, axes, SIZE): what distances are measured to."""
    left: Floats
    """(blocks, needs, SIZE): what is left of each thing that a pod needs; of peaks by step of headroom."""
    most: Floats
    """(needs, blocks): the most that a node of the block has left."""
    admitted: Mask
    """(rows, blocks, SIZE): the nodes that pods of a row may use."""
    admitting: Ints
    """(rows, blocks): how many nodes of a block those are."""


class Chooser(NamedTuple):
    pod: int
    step: int
    """Of headroom."""
    restricted: bool
    """Only nodes of `among` are allowed."""
    among: Mask


class Scratch(NamedTuple):
    """Working memory for one pod: kernels do not allocate arrays."""

    bounds: Floats
    """By block."""
    fitting: Mask
    """By position in a block."""
    possible: Mask
    """By node."""
    worst: Floats
    """By node."""


class Batch(NamedTuple):
    """Pods that choose one after the other."""

    pods: Ints
    restricted: bool
    """The last pod may only use nodes of `among`."""
    among: Mask
    scratch: Scratch


class Ranks(NamedTuple):
    """By pod. The kernel fills in the last four."""

    at: Ints
    """The node it goes to."""
    asked: Mask
    rank: Ints
    """Of the target, from 1."""
    nearer_than_current: Mask
    """The pod prefers the target to its current node."""
    there: Floats
    """Distance to the target."""
    here: Floats
    """Distance to the current node."""


class MoveQueue(NamedTuple):
    """Moves, numbered by value, the most valuable first, and the state of carrying them out."""

    current: Ints
    target: Ints
    involved: Mask
    """The pod has inter-pod constraints, or they select it."""
    request: Floats
    least: Floats
    free: Floats
    slots: Ints
    heap: Ints
    """The moves to try."""
    first: Ints
    """By node: a move that waits for room there; `following` has the next one."""
    following: Ints
    done: Ints
    sizes: Ints
    """Of `heap`, of `done`."""


class ChoiceOptions(NamedTuple):
    after: bool
    """`availability: after`."""
    moves_cost: bool
