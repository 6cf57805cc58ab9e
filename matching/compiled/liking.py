"""The compiled loops of `matching.tastes` and of the moves' ranks. Imported by `loading` only: needs numba."""

from __future__ import annotations

import numpy as np

from matching.compiled.geometry import before, beyond, distance, rounded, square
from matching.compiled.jit import compiled
from matching.compiled.layout import SIZE, Blocks, Guests, Places, Ranks
from matching.shapes import Ints, Mask


@compiled
def nearer(blocks: Blocks, guests: Guests, pod: int, node: int, limit: float, most: int) -> int:
    """How many nodes that admit the pod, its own left out, come before `node` if that reads as `limit`; it is enough to
    know of `most`."""
    low, high, admitting, first, last = blocks.low, blocks.high, blocks.admitting, blocks.first, blocks.last
    row, home, usage, count = guests.row[pod], guests.home[pod], guests.usage, 0
    own = blocks.block[home] if home >= 0 and blocks.admitted[row, blocks.block[home], blocks.seat[home]] else -1
    clearly_farther, clearly_nearer = beyond(limit), before(limit)
    for block in range(len(first)):
        if count >= most or admitting[row, block] == 0:
            continue
        least, farthest = 0.0, 0.0
        for axis in range(len(low)):
            above, below = low[axis, block] - usage[axis, pod], usage[axis, pod] - high[axis, block]
            least += max(above, below, 0.0) ** 2
            farthest += max(abs(above), abs(below)) ** 2
        if least > clearly_farther:
            continue
        as_far = least == farthest and rounded(np.sqrt(least)) == limit
        if farthest < clearly_nearer or (as_far and last[block] < node):
            count += admitting[row, block] - (1 if own == block else 0)
        elif not (as_far and first[block] > node):
            count += nearer_in(blocks, guests, (pod, block), node, limit)
    return count


@compiled
def nearer_in(blocks: Blocks, guests: Guests, where: tuple[int, int], node: int, limit: float) -> int:
    """Node by node in one bundle; `where` is the pod and the bundle."""
    pod, block = where
    row, home, count = guests.row[pod], guests.home[pod], 0
    clearly_farther = beyond(limit)
    for seat in range(SIZE):
        if not blocks.admitted[row, block, seat] or square(blocks, guests, pod, block, seat) > clearly_farther:
            continue
        other, far = blocks.members[block, seat], distance(blocks, guests, pod, block, seat)
        if other not in (home, node) and (far < limit or (far == limit and other < node)):
            count += 1
    return count


@compiled
def reads(blocks: Blocks, guests: Guests, pod: int, node: int) -> float:
    """How near a node is to a pod, with inertia at home."""
    far = distance(blocks, guests, pod, blocks.block[node], blocks.seat[node])
    return rounded(far - guests.inertia[pod]) if node == guests.home[pod] else far


@compiled
def taste(blocks: Blocks, guests: Guests, pods: Ints, held: Mask, place: Ints) -> None:
    """As `matching.tastes.Tastes` has them, for pods that run. Arrays are by pod."""
    everybody = len(blocks.block)
    for pod in pods:
        if not guests.may_stay[pod]:
            continue
        home = guests.home[pod]
        far = distance(blocks, guests, pod, blocks.block[home], blocks.seat[home])
        place[pod] = nearer(blocks, guests, pod, home, rounded(far - guests.inertia[pod]), everybody) + 1
        held[pod] = place[pod] == 1 and nearer(blocks, guests, pod, home, far, 1) > 0


@compiled
def rank_targets(places: Places, blocks: Blocks, guests: Guests, pods: Ints, after: bool, ranks: Ranks) -> None:
    """For the pods that are asked, in rank order among all that chose: where their target and their own node stand in
    their lists at their turn, and how far both are."""
    everybody = len(blocks.block)
    for pod in pods:
        target, home = ranks.at[pod], guests.home[pod]
        if ranks.asked[pod]:
            wish = reads(blocks, guests, pod, target)
            ranks.there[pod] = distance(blocks, guests, pod, blocks.block[target], blocks.seat[target])
            ranks.rank[pod] = nearer(blocks, guests, pod, target, wish, everybody) + 1
            if home >= 0:
                ranks.here[pod] = distance(blocks, guests, pod, blocks.block[home], blocks.seat[home])
            if home >= 0 and home != target and guests.may_stay[pod]:
                own = reads(blocks, guests, pod, home)
                home_first = own < wish or (own == wish and home < target)
                ranks.rank[pod] += 1 if home_first else 0
                ranks.nearer_than_home[pod] = not home_first
        if after and target >= 0:
            block, seat = blocks.block[target], blocks.seat[target]
            for axis in range(len(places.used)):
                places.used[axis, target] += guests.usage[axis, pod]
                left = max(places.untouched[axis, target] - places.used[axis, target], 0.0)
                blocks.room[block, axis, seat] = left
                blocks.low[axis, block] = min(blocks.low[axis, block], left)
