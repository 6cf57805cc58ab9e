"""The loop of `blocking` over happy pods without soft constraints, compiled: the same sums and comparisons, number by
number. Needs numba, and shares nothing with the planners but the way of compiling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matching.compiled.jit import compiled
from matching.verify.fit import AllowedNodes, Room
from matching.verify.placement import NO_NODE, Flags, Ints, Matrix, Placement
from matching.verify.preferences import Preferences

_DECIMALS = 1e9
_EVERY_NODE = np.zeros(0, dtype=bool)


class Inputs(NamedTuple):
    """Shapes are (pods in rank order, axes) and (nodes, axes)."""

    usage: Matrix
    request: Matrix
    peak: Matrix
    current: Ints
    end: Ints
    may_stay_at_end: Flags
    """By pod: it has an end, and may be there."""
    may_stay: Flags
    """By pod: on its current node."""
    kind: Ints
    may_come: Flags
    """(kinds, nodes): whether the rules of a kind of pods let one come."""
    open_to_moves: Flags
    untouched: Matrix
    least: Matrix
    """By axis, of the room of all nodes, unless it changes with each pod (`after`)."""
    most: Matrix
    inertia: float
    after: bool


class State(NamedTuple):
    """At the turn of a pod; shared with `Room` and `Preferences`. The first four are (axes, nodes)."""

    by_request: Matrix
    by_peak: Matrix
    without_headroom: Matrix
    room: Matrix
    slots: Ints
    used: Matrix
    load: Matrix


class Rows(NamedTuple):
    """Pods to be checked one after the other."""

    start: int
    stop: int
    restricted: bool
    """Rules between pods let the last one join only nodes of `allowed`."""
    allowed: Flags
    squares: Matrix
    """By node, overwritten, as `candidates`."""
    candidates: Flags


class CompiledCounter:
    def __init__(self, placement: Placement, preferences: Preferences, room: Room, allowed: AllowedNodes) -> None:
        away = (placement.current != NO_NODE) & (placement.end != placement.current)
        may_stay = np.ones(len(placement.pods), dtype=bool)
        for row in np.flatnonzero(away & placement.no_execute).tolist():
            may_stay[row] = allowed.may_stay(row)
        self._inputs = Inputs(
            usage=placement.usage,
            request=placement.request,
            peak=placement.peak,
            current=placement.current,
            end=placement.end,
            may_stay_at_end=preferences.may_stay,
            may_stay=may_stay,
            kind=allowed.kind,
            may_come=allowed.all_may_come(),
            open_to_moves=allowed.open_to_moves,
            untouched=preferences.untouched,
            least=preferences.room.min(axis=1),
            most=preferences.room.max(axis=1),
            inertia=float(placement.options.inertia),
            after=preferences.after,
        )
        nodes = len(placement.nodes)
        self._squares, self._candidates = np.zeros(nodes), np.zeros(nodes, dtype=bool)
        self._state = State(
            room.by_request,
            room.by_peak,
            room.without_headroom,
            preferences.room,
            room.slots,
            preferences.used,
            preferences.load,
        )

    def count(self, rows: range, allowed: Flags | None, counts: Ints, named: Ints) -> None:
        """Adds to the counts of each node and to the first pods named for it. `allowed`: the nodes that rules between
        pods let the last of those pods join."""
        nodes = _EVERY_NODE if allowed is None else allowed
        run = Rows(rows.start, rows.stop, allowed is not None, nodes, self._squares, self._candidates)
        count_blocking(self._inputs, self._state, run, counts, named)


@compiled
def _round(value: float) -> float:
    return float(np.rint(value * _DECIMALS) / _DECIMALS)


@compiled
def _nearer_with_room(inputs: Inputs, state: State, row: int, limit: float, candidates: Flags, squares: Matrix) -> None:
    """Nodes that may be nearer than the limit and have room. No branches, so that several are checked at a time. Leaves
    the squares of the distances in `squares`."""
    usage, request, peak = inputs.usage, inputs.request, inputs.peak
    room, by_request, by_peak, slots = state.room, state.by_request, state.by_peak, state.slots
    for node in range(len(squares)):
        squares[node] = 0.0
    for axis in range(len(room)):
        used = usage[row, axis]
        for node in range(len(squares)):
            gap = room[axis, node] - used
            squares[node] += gap * gap
    may_come, kind = inputs.may_come, inputs.kind[row]
    for node in range(len(squares)):
        candidates[node] = may_come[kind, node] & (squares[node] <= limit) & (slots[node] >= 1)
    for axis in range(len(room)):
        need, most = request[row, axis], peak[row, axis]
        if need > 0:
            for node in range(len(squares)):
                candidates[node] &= need <= by_request[axis, node]
        if most > 0:
            for node in range(len(squares)):
                candidates[node] &= most < by_peak[axis, node]


@compiled
def _fits_current(inputs: Inputs, state: State, row: int) -> bool:
    """With inertia, a happy pod needs no headroom on its current node."""
    current = inputs.current[row]
    if state.slots[current] < 1 or not inputs.may_stay[row]:
        return False
    for axis in range(inputs.request.shape[1]):
        need, peak = inputs.request[row, axis], inputs.peak[row, axis]
        left = state.without_headroom[axis, current] if inputs.inertia > 0 else state.by_peak[axis, current]
        if (need > 0 and not need <= state.by_request[axis, current]) or (peak > 0 and not peak < left):
            return False
    return True


@compiled
def _advance(inputs: Inputs, state: State, row: int) -> None:
    current, end = inputs.current[row], inputs.end[row]
    for axis in range(inputs.request.shape[1]):
        if inputs.inertia > 0 and current >= 0 and current != end:
            state.load[current, axis] -= inputs.peak[row, axis]
            if end >= 0:
                state.load[end, axis] += inputs.peak[row, axis]
        if end >= 0:
            state.by_request[axis, end] -= inputs.request[row, axis]
            state.by_peak[axis, end] -= inputs.peak[row, axis]
            state.without_headroom[axis, end] -= inputs.peak[row, axis]
            if inputs.after:
                state.used[end, axis] += inputs.usage[row, axis]
                state.room[axis, end] = max(inputs.untouched[end, axis] - state.used[end, axis], 0.0)
    if end >= 0:
        state.slots[end] -= 1


@compiled
def _out_of_reach(inputs: Inputs, row: int, limit: float) -> bool:
    """The least and the most room of any node show that all are too far away. So it is where nodes are alike and
    inertia keeps pods where they are."""
    if inputs.after:
        return False
    square = 0.0
    for axis in range(len(inputs.least)):
        used = inputs.usage[row, axis]
        gap = max(inputs.least[axis] - used, used - inputs.most[axis], 0.0)
        square += gap * gap
    return square > limit


@compiled
def _square(inputs: Inputs, state: State, row: int, node: int) -> float:
    square = 0.0
    for axis in range(len(state.room)):
        gap = state.room[axis, node] - inputs.usage[row, axis]
        square += gap * gap
    return square


@compiled
def _distance(inputs: Inputs, state: State, row: int, node: int) -> float:
    far = _round(np.sqrt(_square(inputs, state, row, node)))
    return _round(far - inputs.inertia) if node == inputs.current[row] else far


@compiled
def count_blocking(inputs: Inputs, state: State, rows: Rows, counts: Ints, named: Ints) -> None:
    """Of happy pods without soft constraints. For most nodes the square of the distance decides: what is farther by
    more than the last decimal stays farther when rounded."""
    squares, candidates = rows.squares, rows.candidates
    open_to_moves, allowed = inputs.open_to_moves, rows.allowed
    for row in range(rows.start, rows.stop):
        restricted = rows.restricted and row == rows.stop - 1
        current, end = inputs.current[row], inputs.end[row]
        had = _distance(inputs, state, row, end) if inputs.may_stay_at_end[row] else np.inf
        limit = max(had + 2 / _DECIMALS, 0.0) ** 2
        first, last = 0, len(counts)
        if _out_of_reach(inputs, row, limit):
            first, last = max(current, 0), current + 1
        else:
            _nearer_with_room(inputs, state, row, limit, candidates, squares)
        if current >= 0:
            candidates[current] = _fits_current(inputs, state, row)
            squares[current] = _square(inputs, state, row, current)
        if end >= 0:
            candidates[end] = False
        for node in range(first, last):
            if not candidates[node] or (restricted and not allowed[node]):
                continue
            far = _round(np.sqrt(squares[node]))
            if node == current:
                far = _round(far - inputs.inertia)
            elif current >= 0 and not open_to_moves[node]:
                continue
            if far < had or (far == had and node < end) or had == np.inf:
                if counts[node] < named.shape[1]:
                    named[node, counts[node]] = row
                counts[node] += 1
        _advance(inputs, state, row)
