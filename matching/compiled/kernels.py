"""The compiled loops of serial choice. Imported by `loading` only: this module needs numba.

Distances are rounded to nine decimals as `matching.preferences` does it, every sum is taken in the same order as there,
and no operation is fused, so that both ways agree in the last bit. Subtraction, squares, sums, roots and rounding never
reverse an order, so the distance to the nearest corner of a bundle is a true lower bound even in floating point.
"""

from __future__ import annotations

import numpy as np

from matching.compiled.geometry import NOBODY, beyond, distance, rounded
from matching.compiled.jit import compiled
from matching.compiled.layout import SIZE, Blocks, Guests, Notes, Places, Run, Turn, Ways
from matching.shapes import Floats, Ints, Mask


@compiled
def refresh(places: Places, blocks: Blocks, node: int, after: bool) -> None:
    """Somebody settled on the node, or nobody has asked yet."""
    axes, block, seat = len(places.free), blocks.block[node], blocks.seat[node]
    blocks.left[block, axes, seat] = places.slots[node]
    for axis in range(axes):
        blocks.left[block, axis, seat] = places.free[axis, node]
        for step in range(len(places.quotas)):
            spare = places.quotas[step, axis, node] - places.load[axis, node]
            blocks.left[block, axes + 1 + step * axes + axis, seat] = spare
        if after:
            blocks.room[block, axis, seat] = max(places.untouched[axis, node] - places.used[axis, node], 0.0)
            blocks.low[axis, block] = min(blocks.low[axis, block], blocks.room[block, axis, seat])
    for need in range(len(blocks.most)):
        most = -np.inf
        for each in range(SIZE):
            most = max(most, blocks.left[block, need, each])
        blocks.most[need, block] = most


@compiled
def refresh_all(places: Places, blocks: Blocks, after: bool) -> None:
    for node in range(len(blocks.block)):
        refresh(places, blocks, node, after)


@compiled
def bound_bundles(blocks: Blocks, guests: Guests, turn: Turn, wish: float, bounds: Floats) -> int:
    """The square of the least distance to each bundle that might do better than the wish, endless for the others;
    returns the nearest, or NOBODY. Distances first, without a branch; then the needs, of which peaks refuse most."""
    low, high, most, admitting = blocks.low, blocks.high, blocks.most, blocks.admitting
    needs, pod, row, axes = guests.needs, turn.pod, guests.row[turn.pod], len(blocks.low)
    for block in range(len(bounds)):
        bounds[block] = 0.0
    for axis in range(axes):
        usage = guests.usage[axis, pod]
        for block in range(len(bounds)):
            gap = max(low[axis, block] - usage, usage - high[axis, block], 0.0)
            bounds[block] += gap * gap
    first, nearest_yet, limit = NOBODY, np.inf, beyond(wish)
    for block in range(len(bounds)):
        roomy = bounds[block] <= limit and admitting[row, block] > 0
        need = needs.shape[1] - 1
        while roomy and need >= 0:
            left = need if need <= axes else need + turn.step * axes
            roomy = most[left, block] >= needs[pod, need]
            need -= 1
        if not roomy:
            bounds[block] = np.inf
        elif bounds[block] < nearest_yet:
            first, nearest_yet = block, bounds[block]
    return first


@compiled
def nearest(blocks: Blocks, guests: Guests, turn: Turn, own: tuple[int, float], notes: Notes) -> int:
    """Of the nodes that admit the pod and have room with the headroom of that step; `own` is home and how near it
    reads, or NOBODY. The nearest bundle is looked at first, since it lets most others be skipped."""
    best, wish = own
    bounds, fitting = notes.bounds, notes.fitting
    first = bound_bundles(blocks, guests, turn, wish, bounds)
    if first == NOBODY:
        return best
    smallest, members, room, left, admitted = blocks.first, blocks.members, blocks.room, blocks.left, blocks.admitted
    usage, needs, among = guests.usage, guests.needs, turn.among
    pod, choosy, row, home = turn.pod, turn.choosy, guests.row[turn.pod], guests.home[turn.pod]
    limit = beyond(wish)
    for look in range(len(bounds) + 1):
        block = first if look == 0 else look - 1
        if bounds[block] > limit or bounds[block] == np.inf:
            continue
        bound = rounded(np.sqrt(bounds[block]))
        if bound > wish or (bound == wish and smallest[block] > best):
            continue
        bounds[block] = np.inf
        if not find_fitting(left, admitted, needs, (pod, row, block, turn.step), fitting):
            continue
        for seat in range(SIZE):
            node = members[block, seat]
            if not fitting[seat] or node == home or (choosy and not among[node]):
                continue
            total = 0.0
            for axis in range(room.shape[1]):
                gap = room[block, axis, seat] - usage[axis, pod]
                total += gap * gap
            if total > limit:
                continue
            far = rounded(np.sqrt(total))
            if far < wish or (far == wish and node < best):
                best, wish = node, far
                limit = beyond(wish)
    return best


@compiled
def find_fitting(left: Floats, admitted: Mask, needs: Floats, where: tuple[int, int, int, int], fitting: Mask) -> bool:
    """Which nodes of a bundle admit the pod and have room. `where` is pod, row, bundle and step. Peaks come first: they
    refuse most."""
    pod, row, block, step = where
    number = needs.shape[1]
    axes = (number - 1) // 2
    for seat in range(SIZE):
        fitting[seat] = admitted[row, block, seat]
    for turn in range(number):
        need = number - 1 - turn
        kind, least = need if need <= axes else need + step * axes, needs[pod, need]
        for seat in range(SIZE):
            fitting[seat] &= left[block, kind, seat] >= least
        if turn == axes - 1:
            some = False
            for seat in range(SIZE):
                some |= fitting[seat]
            if not some:
                return False
    return True


@compiled
def peak_fits_at_home(places: Places, guests: Guests, pod: int, step: int) -> bool:
    """A happy pod needs no headroom there where inertia counts."""
    home = guests.home[pod]
    if guests.at_ease[pod]:
        step = len(places.quotas) - 1
    for axis in range(len(places.load)):
        if not places.quotas[step, axis, home] - places.load[axis, home] > guests.least_spare[axis, pod]:
            return False
    return True


@compiled
def has_room(places: Places, guests: Guests, pod: int, node: int) -> bool:
    """By requests and number of pods."""
    for axis in range(len(places.free)):
        if not places.free[axis, node] >= guests.needs[pod, axis]:
            return False
    return bool(places.slots[node] >= 1)


@compiled
def choose(places: Places, blocks: Blocks, guests: Guests, turn: Turn, notes: Notes) -> tuple[int, int]:
    """With less and less headroom, then the node that ends least overloaded; the number of steps stands for that."""
    pod, steps, home = turn.pod, len(places.quotas), guests.home[turn.pod]
    own, wish = NOBODY, np.inf
    allowed = home >= 0 and guests.may_stay[pod] and (not turn.choosy or turn.among[home])
    if allowed and has_room(places, guests, pod, home):
        far = distance(blocks, guests, pod, blocks.block[home], blocks.seat[home])
        own, wish = home, rounded(far - guests.inertia[pod])
    for step in range(steps):
        here = (own, wish) if own != NOBODY and peak_fits_at_home(places, guests, pod, step) else (NOBODY, np.inf)
        best = nearest(blocks, guests, Turn(pod, step, turn.choosy, turn.among), here, notes)
        if best != NOBODY:
            return best, step
    return least_overloaded(places, blocks, guests, turn, notes), steps


@compiled
def least_overloaded(places: Places, blocks: Blocks, guests: Guests, turn: Turn, notes: Notes) -> int:
    """Every node is asked. Staying wins ties, then the pod's own preference."""
    pod, home = turn.pod, guests.home[turn.pod]
    among, some = notes.possible, False
    for node in range(len(among)):
        among[node] = False
        admitted = blocks.admitted[guests.row[pod], blocks.block[node], blocks.seat[node]]
        welcome = guests.may_stay[pod] if node == home else admitted
        if welcome and (not turn.choosy or turn.among[node]) and has_room(places, guests, pod, node):
            among[node] = some = True
    if not some:
        return NOBODY
    keep_least_overloaded(places, guests, pod, among, notes.worst)
    if home >= 0 and among[home]:
        return int(home)
    best, wish = NOBODY, np.inf
    for node in range(len(among)):
        if among[node]:
            far = distance(blocks, guests, pod, blocks.block[node], blocks.seat[node])
            if far < wish:
                best, wish = node, far
    return best


@compiled
def keep_least_overloaded(places: Places, guests: Guests, pod: int, among: Mask, worst: Floats) -> None:
    """Of those nodes leave the ones that end least overloaded."""
    least = np.inf
    for node in range(len(among)):
        if not among[node]:
            continue
        share = 0.0
        for axis in range(len(places.load)):
            load = places.load[axis, node] + guests.peak[axis, pod]
            of_axis = 0.0
            if places.allocatable[axis, node] > 0:
                of_axis = load / places.allocatable[axis, node]
            elif load > 0:
                of_axis = 1.0 + load
            share = of_axis if axis == 0 else max(share, of_axis)
        worst[node] = rounded(share)
        least = min(least, worst[node])
    for node in range(len(among)):
        among[node] = among[node] and worst[node] == least


@compiled
def settle(places: Places, guests: Guests, ways: Ways, pod: int, node: int) -> None:
    """The pod is on the node now."""
    home = guests.home[pod]
    for axis in range(len(places.free)):
        places.free[axis, node] -= guests.request[axis, pod]
        places.load[axis, node] += guests.peak[axis, pod]
        if ways.after:
            places.used[axis, node] += guests.usage[axis, pod]
        if ways.moves_cost and node != home:
            places.seen[axis, node] += guests.peak[axis, pod]
            if home >= 0:
                places.seen[axis, home] -= guests.peak[axis, pod]
    places.slots[node] -= 1


@compiled
def choose_in_turn(
    places: Places, blocks: Blocks, guests: Guests, ways: Ways, run: Run, found: tuple[Ints, Ints]
) -> None:
    """Serial choice of those pods, which neither wish nor mind anything but room; to the last one the rules between
    pods may have left only some nodes. `found` gets for each the node and the step of headroom."""
    if blocks.members.shape[1] != SIZE:
        raise ValueError("compiled for bundles of another size: numba's cache is out of date")
    at, given = found
    pods = run.pods
    for place in range(len(pods)):
        pod, choosy = pods[place], run.choosy and place == len(pods) - 1
        node, step = choose(places, blocks, guests, Turn(pod, 0, choosy, run.among), run.notes)
        at[place], given[place] = node, step
        if node != NOBODY:
            settle(places, guests, ways, pod, node)
            refresh(places, blocks, node, ways.after)
