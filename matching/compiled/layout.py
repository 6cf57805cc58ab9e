"""What the kernels work on: plain arrays under names. Shapes are (axes, pods), (axes, nodes) unless said otherwise."""

from __future__ import annotations

from typing import NamedTuple

from matching.shapes import Floats, Ints, Mask

SIZE = 64
"""Nodes of a bundle. A pod looks at every bundle and into few, so the root of the number of nodes would do best;
between 1,000 and 10,000 nodes this is near enough."""


class Guests(NamedTuple):
    """The pods."""

    usage: Floats
    request: Floats
    peak: Floats
    least_spare: Floats
    needs: Floats
    """(pods, needs): what `Blocks.left` must be at least: requests by axis, one slot, peaks by axis."""
    home: Ints
    row: Ints
    """By pod: its row of `Blocks.admitted`."""
    may_stay: Mask
    at_ease: Mask
    inertia: Floats
    """By pod: how much nearer its own node reads."""


class Places(NamedTuple):
    """The nodes while pods choose: `free`, `load`, `slots`, `used` and `seen` change."""

    untouched: Floats
    """Room before anybody chose, not cut off at 0."""
    allocatable: Floats
    quotas: Floats
    """(steps, axes, nodes): what peaks have to stay below, from the full headroom to none."""
    free: Floats
    load: Floats
    slots: Ints
    used: Floats
    """Usage of those who have chosen."""
    seen: Floats
    """Loads as an unhappy pod sees them at its turn."""


class Blocks(NamedTuple):
    """The nodes in bundles of SIZE with rooms that are near each other. A bundle that is too far or too full is skipped
    whole; within one the number of steps is known to the compiler. The last one is filled up with seats that are never
    free. `left` and `most` change as pods choose, and with the room after those who chose `room` and `low`."""

    members: Ints
    """(bundles, SIZE): the node on each seat; NOWHERE on one that is never free."""
    block: Ints
    """By node: its bundle, and its seat there."""
    seat: Ints
    first: Ints
    """The smallest node of each bundle, and the largest: ties go by name."""
    last: Ints
    low: Floats
    """(axes, bundles): the corners of the rooms of a bundle."""
    high: Floats
    room: Floats
    """(bundles, axes, SIZE): what distances are taken to."""
    left: Floats
    """(bundles, needs, SIZE): what is left of each thing that a pod needs; of peaks by step of headroom."""
    most: Floats
    """(needs, bundles): the most that a node of the bundle has left."""
    admitted: Mask
    """(rows, bundles, SIZE): where the rules let pods of a row go."""
    admitting: Ints
    """(rows, bundles): how many nodes of a bundle that are."""


class Turn(NamedTuple):
    pod: int
    step: int
    """Of headroom."""
    choosy: bool
    """Only nodes of `among` will do."""
    among: Mask


class Notes(NamedTuple):
    """Room to write to while one pod is asked: kernels make no arrays of their own."""

    bounds: Floats
    """By bundle."""
    fitting: Mask
    """By seat of a bundle."""
    possible: Mask
    """By node."""
    worst: Floats
    """By node."""


class Run(NamedTuple):
    """Pods that choose one after the other."""

    pods: Ints
    choosy: bool
    """The last one may only go to nodes of `among`."""
    among: Mask
    notes: Notes


class Ranks(NamedTuple):
    """By pod. The last four are what is asked for."""

    at: Ints
    """Where it goes."""
    asked: Mask
    rank: Ints
    """Of the target, from 1."""
    nearer_than_home: Mask
    """It comes before the pod's own node in the list."""
    there: Floats
    """Distance to the target."""
    here: Floats
    """Distance to the node it is on."""


class Moves(NamedTuple):
    """Numbered by value, the most valuable first; what has been done of them."""

    home: Ints
    target: Ints
    involved: Mask
    """Rules between pods are about the pod."""
    request: Floats
    least: Floats
    free: Floats
    slots: Ints
    heap: Ints
    """Those that are to be tried."""
    first: Ints
    """By node: one that waits for room there; `following` has the next one."""
    following: Ints
    done: Ints
    sizes: Ints
    """Of `heap`, of `done`."""


class Ways(NamedTuple):
    """How the matching is asked for."""

    after: bool
    """Room is what those who chose before have left."""
    moves_cost: bool
