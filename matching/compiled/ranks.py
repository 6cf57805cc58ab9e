"""The compiled loops of preference ranks. Needs numba."""

from __future__ import annotations

import numpy as np

from matching.array_types import Ints, Mask
from matching.compiled.jit import compiled
from matching.compiled.layout import SIZE, Blocks, NodeArrays, PodArrays, Ranks
from matching.compiled.serial_choice import before, beyond, distance, rounded, square


@compiled
def nearer(blocks: Blocks, pods: PodArrays, pod: int, node: int, limit: float, most: int) -> int:
    """How many nodes that admit the pod, without its current one, come before `node` if that costs `limit`. Counts no
    further than `most`."""
    low, high, admitting, first, last = blocks.low, blocks.high, blocks.admitting, blocks.first, blocks.last
    row, current, usage, count = pods.row[pod], pods.current[pod], pods.usage, 0
    own = (
        blocks.block[current]
        if current >= 0 and blocks.admitted[row, blocks.block[current], blocks.position[current]]
        else -1
    )
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
            count += nearer_in(blocks, pods, (pod, block), node, limit)
    return count


@compiled
def nearer_in(blocks: Blocks, pods: PodArrays, where: tuple[int, int], node: int, limit: float) -> int:
    """Node by node in one block; `where` is the pod and the block."""
    pod, block = where
    row, current, count = pods.row[pod], pods.current[pod], 0
    clearly_farther = beyond(limit)
    for position in range(SIZE):
        if not blocks.admitted[row, block, position] or square(blocks, pods, pod, block, position) > clearly_farther:
            continue
        other, far = blocks.members[block, position], distance(blocks, pods, pod, block, position)
        if other not in (current, node) and (far < limit or (far == limit and other < node)):
            count += 1
    return count


@compiled
def cost_of(blocks: Blocks, pods: PodArrays, pod: int, node: int) -> float:
    """Distance, less the inertia for the current node."""
    far = distance(blocks, pods, pod, blocks.block[node], blocks.position[node])
    return rounded(far - pods.inertia[pod]) if node == pods.current[pod] else far


@compiled
def rank_own_nodes(blocks: Blocks, pods: PodArrays, listed: Ints, by_inertia: Mask, rank: Ints) -> None:
    """`matching.preferences.own_node_ranks` for running pods. Arrays are by pod."""
    all_nodes = len(blocks.block)
    for pod in listed:
        if not pods.may_stay[pod]:
            continue
        current = pods.current[pod]
        far = distance(blocks, pods, pod, blocks.block[current], blocks.position[current])
        rank[pod] = nearer(blocks, pods, pod, current, rounded(far - pods.inertia[pod]), all_nodes) + 1
        by_inertia[pod] = rank[pod] == 1 and nearer(blocks, pods, pod, current, far, 1) > 0


@compiled
def rank_targets(nodes: NodeArrays, blocks: Blocks, pods: PodArrays, listed: Ints, after: bool, ranks: Ranks) -> None:
    """For the asked pods, in rank order among all that chose: the rank of their target at their turn, whether it comes
    before the current node, and both distances."""
    all_nodes = len(blocks.block)
    for pod in listed:
        target, current = ranks.at[pod], pods.current[pod]
        if ranks.asked[pod]:
            target_cost = cost_of(blocks, pods, pod, target)
            ranks.there[pod] = distance(blocks, pods, pod, blocks.block[target], blocks.position[target])
            ranks.rank[pod] = nearer(blocks, pods, pod, target, target_cost, all_nodes) + 1
            if current >= 0:
                ranks.here[pod] = distance(blocks, pods, pod, blocks.block[current], blocks.position[current])
            if current >= 0 and current != target and pods.may_stay[pod]:
                own = cost_of(blocks, pods, pod, current)
                current_first = own < target_cost or (own == target_cost and current < target)
                ranks.rank[pod] += 1 if current_first else 0
                ranks.nearer_than_current[pod] = not current_first
        if after and target >= 0:
            block, position = blocks.block[target], blocks.position[target]
            for axis in range(len(nodes.used)):
                nodes.used[axis, target] += pods.usage[axis, pod]
                left = max(nodes.untouched[axis, target] - nodes.used[axis, target], 0.0)
                blocks.room[block, axis, position] = left
                blocks.low[axis, block] = min(blocks.low[axis, block], left)
