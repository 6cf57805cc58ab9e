"""What the compiled loop of the verifier works on. Shapes are (pods in rank order, axes) and (nodes, axes)."""

from __future__ import annotations

from typing import NamedTuple

from matching.certificate.view import Flags, Ints, Matrix


class Facts(NamedTuple):
    usage: Matrix
    request: Matrix
    peak: Matrix
    home: Ints
    end: Ints
    welcome: Flags
    """By pod: it may be where it ends."""
    stays: Flags
    """By pod: it might stay at home."""
    kind: Ints
    come: Flags
    """(kinds, nodes): whether the rules of a kind of pods let one come."""
    measured: Flags
    untouched: Matrix
    least: Matrix
    """By axis: of the rooms of the nodes, unless they change with each pod (`after`)."""
    most: Matrix
    inertia: float
    after: bool


class Above(NamedTuple):
    """How things are at a pod's turn; shared with `room.Room` and `wishes.Wishes`. The first four are (axes, nodes)."""

    by_request: Matrix
    by_peak: Matrix
    without_headroom: Matrix
    room: Matrix
    slots: Ints
    used: Matrix
    load: Matrix


class Run(NamedTuple):
    """Pods that are asked one after the other."""

    start: int
    stop: int
    choosy: bool
    """Rules between pods let the last one join only nodes of `among`."""
    among: Flags
    squares: Matrix
    """By node, to be written to, as `candidates`."""
    candidates: Flags
