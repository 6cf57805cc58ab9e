"""The compiled loop of `matching.planning.move_order`. Needs numba."""

from __future__ import annotations

from matching.array_types import Floats, Ints
from matching.compiled.jit import compiled
from matching.compiled.layout import MoveQueue

NOTHING = -1


@compiled
def push(heap: Ints, size: int, value: int) -> int:
    """Returns the new size."""
    at = size
    while at > 0 and heap[(at - 1) // 2] > value:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = value
    return size + 1


@compiled
def pop(heap: Ints, size: int) -> int:
    """The smallest; the caller counts down."""
    smallest, last = heap[0], heap[size - 1]
    at, size = 0, size - 1
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return int(smallest)


@compiled
def roomy(free: Floats, least: Floats, value: int, node: int) -> bool:
    enough = True
    for axis in range(len(free)):
        enough &= free[axis, node] >= least[axis, value]
    return enough


@compiled
def carry_out(moves: MoveQueue, value: int) -> None:
    """Carry out the move: room changes on both nodes, and moves that waited for room on the source are ready again."""
    target, current = moves.target[value], moves.current[value]
    moves.slots[target] -= 1
    for axis in range(len(moves.free)):
        moves.free[axis, target] -= moves.request[axis, value]
        if current >= 0:
            moves.free[axis, current] += moves.request[axis, value]
    moves.done[moves.sizes[1]] = value
    moves.sizes[1] += 1
    if current >= 0:
        moves.slots[current] += 1
        waiting = moves.first[current]
        moves.first[current] = NOTHING
        while waiting != NOTHING:
            moves.sizes[0] = push(moves.heap, moves.sizes[0], waiting)
            waiting = moves.following[waiting]


@compiled
def proceed(moves: MoveQueue) -> int:
    """Until nothing is ready (NOTHING), or until the next move is of a pod with inter-pod constraints."""
    while moves.sizes[0] > 0:
        value = pop(moves.heap, moves.sizes[0])
        moves.sizes[0] -= 1
        target = moves.target[value]
        if moves.slots[target] < 1 or not roomy(moves.free, moves.least, value, target):
            moves.following[value] = moves.first[target]
            moves.first[target] = value
        elif moves.involved[value]:
            return value
        else:
            carry_out(moves, value)
    return NOTHING
