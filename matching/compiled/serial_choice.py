"""The compiled loops of serial choice. Only `loading` imports them: they need numba.

Distances are rounded to nine decimals as in `matching.preferences`, every sum is taken in the same order as there, and
no operation is fused, so that both implementations agree in the last bit. Subtraction, squares, sums, roots and
rounding never reverse an order, so the distance to the nearest corner of a block is a true lower bound even in floating
point.
"""

from __future__ import annotations

import numpy as np

from matching.array_types import Floats, Ints, Mask
from matching.compiled.jit import compiled
from matching.compiled.layout import SIZE, Batch, Blocks, ChoiceOptions, Chooser, NodeArrays, PodArrays, Scratch

NO_NODE = -1

_SCALE = 1e9


@compiled
def rounded(value: float) -> float:
    return float(np.rint(value * _SCALE) / _SCALE)


@compiled
def square(blocks: Blocks, pods: PodArrays, pod: int, block: int, position: int) -> float:
    total = 0.0
    for axis in range(blocks.room.shape[1]):
        gap = blocks.room[block, axis, position] - pods.usage[axis, pod]
        total += gap * gap
    return total


@compiled
def distance(blocks: Blocks, pods: PodArrays, pod: int, block: int, position: int) -> float:
    return rounded(np.sqrt(square(blocks, pods, pod, block, position)))


@compiled
def beyond(cost: float) -> float:
    """A larger square means a larger distance than the cost: most nodes need no square root."""
    limit = max(cost + 2 / _SCALE, 0.0)
    return limit * limit


@compiled
def before(cost: float) -> float:
    """A smaller square means a smaller distance than the cost."""
    limit = max(cost - 2 / _SCALE, 0.0)
    return limit * limit


@compiled
def refresh(nodes: NodeArrays, blocks: Blocks, node: int, after: bool) -> None:
    """After a pod was put on the node, and once at the start."""
    axes, block, position = len(nodes.free), blocks.block[node], blocks.position[node]
    blocks.left[block, axes, position] = nodes.slots[node]
    for axis in range(axes):
        blocks.left[block, axis, position] = nodes.free[axis, node]
        for step in range(len(nodes.quotas)):
            spare = nodes.quotas[step, axis, node] - nodes.load[axis, node]
            blocks.left[block, axes + 1 + step * axes + axis, position] = spare
        if after:
            blocks.room[block, axis, position] = max(nodes.untouched[axis, node] - nodes.used[axis, node], 0.0)
            blocks.low[axis, block] = min(blocks.low[axis, block], blocks.room[block, axis, position])
    for need in range(len(blocks.most)):
        most = -np.inf
        for each in range(SIZE):
            most = max(most, blocks.left[block, need, each])
        blocks.most[need, block] = most


@compiled
def refresh_all(nodes: NodeArrays, blocks: Blocks, after: bool) -> None:
    for node in range(len(blocks.block)):
        refresh(nodes, blocks, node, after)


@compiled
def bound_blocks(blocks: Blocks, pods: PodArrays, chooser: Chooser, cost: float, bounds: Floats) -> int:
    """The square of the least distance to each block that might beat the cost, infinite for the others. Returns the
    nearest block, or NO_NODE. Distances first, without a branch; then the needs, of which peaks refuse most."""
    low, high, most, admitting = blocks.low, blocks.high, blocks.most, blocks.admitting
    needs, pod, row, axes = pods.needs, chooser.pod, pods.row[chooser.pod], len(blocks.low)
    for block in range(len(bounds)):
        bounds[block] = 0.0
    for axis in range(axes):
        usage = pods.usage[axis, pod]
        for block in range(len(bounds)):
            gap = max(low[axis, block] - usage, usage - high[axis, block], 0.0)
            bounds[block] += gap * gap
    first, nearest_yet, limit = NO_NODE, np.inf, beyond(cost)
    for block in range(len(bounds)):
        roomy = bounds[block] <= limit and admitting[row, block] > 0
        need = needs.shape[1] - 1
        while roomy and need >= 0:
            left = need if need <= axes else need + chooser.step * axes
            roomy = most[left, block] >= needs[pod, need]
            need -= 1
        if not roomy:
            bounds[block] = np.inf
        elif bounds[block] < nearest_yet:
            first, nearest_yet = block, bounds[block]
    return first


@compiled
def nearest(blocks: Blocks, pods: PodArrays, chooser: Chooser, own: tuple[int, float], scratch: Scratch) -> int:
    """Of the nodes that admit the pod and have room with the headroom of that step. `own` is the current node and its
    cost, or NO_NODE. The nearest block comes first, because then most others can be skipped."""
    best, cost = own
    bounds, fitting = scratch.bounds, scratch.fitting
    first = bound_blocks(blocks, pods, chooser, cost, bounds)
    if first == NO_NODE:
        return best
    smallest, members, room, left, admitted = blocks.first, blocks.members, blocks.room, blocks.left, blocks.admitted
    usage, needs, among = pods.usage, pods.needs, chooser.among
    pod, restricted, row, current = chooser.pod, chooser.restricted, pods.row[chooser.pod], pods.current[chooser.pod]
    limit = beyond(cost)
    for look in range(len(bounds) + 1):
        block = first if look == 0 else look - 1
        if bounds[block] > limit or bounds[block] == np.inf:
            continue
        bound = rounded(np.sqrt(bounds[block]))
        if bound > cost or (bound == cost and smallest[block] > best):
            continue
        bounds[block] = np.inf
        if not find_fitting(left, admitted, needs, (pod, row, block, chooser.step), fitting):
            continue
        for position in range(SIZE):
            node = members[block, position]
            if not fitting[position] or node == current or (restricted and not among[node]):
                continue
            total = 0.0
            for axis in range(room.shape[1]):
                gap = room[block, axis, position] - usage[axis, pod]
                total += gap * gap
            if total > limit:
                continue
            far = rounded(np.sqrt(total))
            if far < cost or (far == cost and node < best):
                best, cost = node, far
                limit = beyond(cost)
    return best


@compiled
def find_fitting(left: Floats, admitted: Mask, needs: Floats, where: tuple[int, int, int, int], fitting: Mask) -> bool:
    """Which nodes of a block admit the pod and have room. `where` is pod, row, block and step. Peaks come first: they
    refuse most."""
    pod, row, block, step = where
    number = needs.shape[1]
    axes = (number - 1) // 2
    for position in range(SIZE):
        fitting[position] = admitted[row, block, position]
    for back in range(number):
        need = number - 1 - back
        kind, least = need if need <= axes else need + step * axes, needs[pod, need]
        for position in range(SIZE):
            fitting[position] &= left[block, kind, position] >= least
        if back == axes - 1:
            some = False
            for position in range(SIZE):
                some |= fitting[position]
            if not some:
                return False
    return True


@compiled
def peak_fits_on_current(nodes: NodeArrays, pods: PodArrays, pod: int, step: int) -> bool:
    """With inertia, a happy pod needs no headroom there."""
    current = pods.current[pod]
    if pods.headroom_exempt[pod]:
        step = len(nodes.quotas) - 1
    for axis in range(len(nodes.load)):
        if not nodes.quotas[step, axis, current] - nodes.load[axis, current] > pods.least_spare[axis, pod]:
            return False
    return True


@compiled
def has_room(nodes: NodeArrays, pods: PodArrays, pod: int, node: int) -> bool:
    """By requests and number of pods."""
    for axis in range(len(nodes.free)):
        if not nodes.free[axis, node] >= pods.needs[pod, axis]:
            return False
    return bool(nodes.slots[node] >= 1)


@compiled
def choose(nodes: NodeArrays, blocks: Blocks, pods: PodArrays, chooser: Chooser, scratch: Scratch) -> tuple[int, int]:
    """The node and the step of headroom. Without room at any step, the node that ends least overloaded, and the number
    of steps."""
    pod, steps, current = chooser.pod, len(nodes.quotas), pods.current[chooser.pod]
    own, cost = NO_NODE, np.inf
    allowed = current >= 0 and pods.may_stay[pod] and (not chooser.restricted or chooser.among[current])
    if allowed and has_room(nodes, pods, pod, current):
        far = distance(blocks, pods, pod, blocks.block[current], blocks.position[current])
        own, cost = current, rounded(far - pods.inertia[pod])
    for step in range(steps):
        here = (own, cost) if own != NO_NODE and peak_fits_on_current(nodes, pods, pod, step) else (NO_NODE, np.inf)
        best = nearest(blocks, pods, Chooser(pod, step, chooser.restricted, chooser.among), here, scratch)
        if best != NO_NODE:
            return best, step
    return least_overloaded(nodes, blocks, pods, chooser, scratch), steps


@compiled
def least_overloaded(nodes: NodeArrays, blocks: Blocks, pods: PodArrays, chooser: Chooser, scratch: Scratch) -> int:
    """Among all nodes. Staying wins ties, then the pod's preference."""
    pod, current = chooser.pod, pods.current[chooser.pod]
    among, some = scratch.possible, False
    for node in range(len(among)):
        among[node] = False
        admitted = blocks.admitted[pods.row[pod], blocks.block[node], blocks.position[node]]
        allowed_there = pods.may_stay[pod] if node == current else admitted
        if allowed_there and (not chooser.restricted or chooser.among[node]) and has_room(nodes, pods, pod, node):
            among[node] = some = True
    if not some:
        return NO_NODE
    keep_least_overloaded(nodes, pods, pod, among, scratch.worst)
    if current >= 0 and among[current]:
        return int(current)
    best, cost = NO_NODE, np.inf
    for node in range(len(among)):
        if among[node]:
            far = distance(blocks, pods, pod, blocks.block[node], blocks.position[node])
            if far < cost:
                best, cost = node, far
    return best


@compiled
def keep_least_overloaded(nodes: NodeArrays, pods: PodArrays, pod: int, among: Mask, worst: Floats) -> None:
    """Keep of those nodes the ones that end least overloaded."""
    least = np.inf
    for node in range(len(among)):
        if not among[node]:
            continue
        share = 0.0
        for axis in range(len(nodes.load)):
            load = nodes.load[axis, node] + pods.peak[axis, pod]
            of_axis = 0.0
            if nodes.allocatable[axis, node] > 0:
                of_axis = load / nodes.allocatable[axis, node]
            elif load > 0:
                of_axis = 1.0 + load
            share = of_axis if axis == 0 else max(share, of_axis)
        worst[node] = rounded(share)
        least = min(least, worst[node])
    for node in range(len(among)):
        among[node] = among[node] and worst[node] == least


@compiled
def put(nodes: NodeArrays, pods: PodArrays, options: ChoiceOptions, pod: int, node: int) -> None:
    """Put the pod on the node."""
    current = pods.current[pod]
    for axis in range(len(nodes.free)):
        nodes.free[axis, node] -= pods.request[axis, pod]
        nodes.load[axis, node] += pods.peak[axis, pod]
        if options.after:
            nodes.used[axis, node] += pods.usage[axis, pod]
        if options.moves_cost and node != current:
            nodes.seen[axis, node] += pods.peak[axis, pod]
            if current >= 0:
                nodes.seen[axis, current] -= pods.peak[axis, pod]
    nodes.slots[node] -= 1


@compiled
def choose_in_turn(
    nodes: NodeArrays, blocks: Blocks, pods: PodArrays, options: ChoiceOptions, batch: Batch, found: tuple[Ints, Ints]
) -> None:
    """Serial choice of pods without soft and inter-pod constraints. Inter-pod constraints may restrict the last one to
    some nodes. `found` gets the node and the step of headroom of each pod."""
    if blocks.members.shape[1] != SIZE:
        raise ValueError("compiled for blocks of another size: numba's cache is out of date")
    at, given = found
    ordered = batch.pods
    for turn in range(len(ordered)):
        pod, restricted = ordered[turn], batch.restricted and turn == len(ordered) - 1
        node, step = choose(nodes, blocks, pods, Chooser(pod, 0, restricted, batch.among), batch.scratch)
        at[turn], given[turn] = node, step
        if node != NO_NODE:
            put(nodes, pods, options, pod, node)
            refresh(nodes, blocks, node, options.after)
