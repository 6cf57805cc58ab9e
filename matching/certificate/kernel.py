"""The compiled loop of the verifier; needs numba, and shares nothing with the planners but the way of compiling."""

from __future__ import annotations

import numpy as np

from matching.certificate.layout import Above, Facts, Run
from matching.certificate.view import Flags, Ints, Matrix
from matching.compiled.jit import compiled

_DECIMALS = 1e9


@compiled
def _round(value: float) -> float:
    return float(np.rint(value * _DECIMALS) / _DECIMALS)


@compiled
def _nearer_with_room(facts: Facts, above: Above, row: int, limit: float, candidates: Flags, squares: Matrix) -> None:
    """Nodes that might be nearer than the limit, and have room; no branches, so that many are asked at a time. Squares
    of distances are left behind."""
    usage, request, peak = facts.usage, facts.request, facts.peak
    room, by_request, by_peak, slots = above.room, above.by_request, above.by_peak, above.slots
    for node in range(len(squares)):
        squares[node] = 0.0
    for axis in range(len(room)):
        used = usage[row, axis]
        for node in range(len(squares)):
            gap = room[axis, node] - used
            squares[node] += gap * gap
    come, kind = facts.come, facts.kind[row]
    for node in range(len(squares)):
        candidates[node] = come[kind, node] & (squares[node] <= limit) & (slots[node] >= 1)
    for axis in range(len(room)):
        need, most = request[row, axis], peak[row, axis]
        if need > 0:
            for node in range(len(squares)):
                candidates[node] &= need <= by_request[axis, node]
        if most > 0:
            for node in range(len(squares)):
                candidates[node] &= most < by_peak[axis, node]


@compiled
def _fits_at_home(facts: Facts, above: Above, row: int) -> bool:
    """A happy pod needs no headroom on its own node where inertia counts."""
    home = facts.home[row]
    if above.slots[home] < 1 or not facts.stays[row]:
        return False
    for axis in range(facts.request.shape[1]):
        need, peak = facts.request[row, axis], facts.peak[row, axis]
        left = above.without_headroom[axis, home] if facts.inertia > 0 else above.by_peak[axis, home]
        if (need > 0 and not need <= above.by_request[axis, home]) or (peak > 0 and not peak < left):
            return False
    return True


@compiled
def _passes(facts: Facts, above: Above, row: int) -> None:
    home, end = facts.home[row], facts.end[row]
    for axis in range(facts.request.shape[1]):
        if facts.inertia > 0 and home >= 0 and home != end:
            above.load[home, axis] -= facts.peak[row, axis]
            if end >= 0:
                above.load[end, axis] += facts.peak[row, axis]
        if end >= 0:
            above.by_request[axis, end] -= facts.request[row, axis]
            above.by_peak[axis, end] -= facts.peak[row, axis]
            above.without_headroom[axis, end] -= facts.peak[row, axis]
            if facts.after:
                above.used[end, axis] += facts.usage[row, axis]
                above.room[axis, end] = max(facts.untouched[end, axis] - above.used[end, axis], 0.0)
    if end >= 0:
        above.slots[end] -= 1


@compiled
def _out_of_reach(facts: Facts, row: int, limit: float) -> bool:
    """All rooms are too far away, told by the least and the largest of them: so it is where nodes are alike and inertia
    keeps pods where they are."""
    if facts.after:
        return False
    square = 0.0
    for axis in range(len(facts.least)):
        used = facts.usage[row, axis]
        gap = max(facts.least[axis] - used, used - facts.most[axis], 0.0)
        square += gap * gap
    return square > limit


@compiled
def _square(facts: Facts, above: Above, row: int, node: int) -> float:
    square = 0.0
    for axis in range(len(above.room)):
        gap = above.room[axis, node] - facts.usage[row, axis]
        square += gap * gap
    return square


@compiled
def _distance(facts: Facts, above: Above, row: int, node: int) -> float:
    far = _round(np.sqrt(_square(facts, above, row, node)))
    return _round(far - facts.inertia) if node == facts.home[row] else far


@compiled
def count_blocking(facts: Facts, above: Above, run: Run, counts: Ints, named: Ints) -> None:
    """Those pods, which are not unhappy and have no soft wishes. Most nodes are told by the square of their distance
    alone: what is farther by more than the last decimal reads farther."""
    squares, candidates = run.squares, run.candidates
    measured, homes, ends, among = facts.measured, facts.home, facts.end, run.among
    for row in range(run.start, run.stop):
        choosy = run.choosy and row == run.stop - 1
        home, end = homes[row], ends[row]
        had = _distance(facts, above, row, end) if facts.welcome[row] else np.inf
        limit = max(had + 2 / _DECIMALS, 0.0) ** 2
        first, last = 0, len(counts)
        if _out_of_reach(facts, row, limit):
            first, last = max(home, 0), home + 1
        else:
            _nearer_with_room(facts, above, row, limit, candidates, squares)
        if home >= 0:
            candidates[home] = _fits_at_home(facts, above, row)
            squares[home] = _square(facts, above, row, home)
        if end >= 0:
            candidates[end] = False
        for node in range(first, last):
            if not candidates[node] or (choosy and not among[node]):
                continue
            far = _round(np.sqrt(squares[node]))
            if node == home:
                far = _round(far - facts.inertia)
            elif home >= 0 and not measured[node]:
                continue
            if far < had or (far == had and node < end) or had == np.inf:
                if counts[node] < named.shape[1]:
                    named[node, counts[node]] = row
                counts[node] += 1
        _passes(facts, above, row)
