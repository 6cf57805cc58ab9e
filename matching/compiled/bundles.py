"""Nodes in bundles with rooms that are near each other, by halving along the widest axis."""

from __future__ import annotations

import numpy as np

from matching.compiled.layout import SIZE, Blocks
from matching.shapes import NOWHERE, Floats, Ints, Mask


def bundled(room: Floats, admitted: Mask, steps: int) -> Blocks:
    """`room` is (axes, nodes), `admitted` (rows, nodes); there are so many steps of headroom. What is left in the
    bundles is for the kernel `refresh` to say. All arrays are C-contiguous: numba compiles anew for another layout."""
    order = _halved(room)
    number = -(-len(order) // SIZE)
    members = np.concatenate([order, np.full(number * SIZE - len(order), NOWHERE)]).reshape(number, SIZE)
    block, seat = np.empty_like(order), np.empty_like(order)
    block[order], seat[order] = np.divmod(np.arange(len(order)), SIZE)
    empty = members == NOWHERE
    rooms = room[:, members]
    admitting = admitted[:, members] & ~empty
    needs = len(room) * (1 + steps) + 1
    blocks = Blocks(
        members=members,
        block=block,
        seat=seat,
        first=np.where(empty, len(order), members).min(axis=1),
        last=members.max(axis=1),
        low=np.where(empty, np.inf, rooms).min(axis=2),
        high=np.where(empty, -np.inf, rooms).max(axis=2),
        room=rooms.transpose(1, 0, 2),
        left=np.full((number, needs, SIZE), -np.inf),
        most=np.full((needs, number), -np.inf),
        admitted=admitting,
        admitting=admitting.sum(axis=2, dtype=np.int64),
    )
    return Blocks._make(np.ascontiguousarray(part) for part in blocks)


def _halved(room: Floats) -> Ints:
    """All nodes, bundle after bundle. Equal rooms stay in the order of the names, which is the order in which they
    fill up."""
    whole, parts = [np.arange(room.shape[1], dtype=np.int64)], []
    while whole:
        part = whole.pop()
        if len(part) <= SIZE:
            parts.append(part)
            continue
        axis = int(np.ptp(room[:, part], axis=1).argmax())
        ordered = part[np.argsort(room[axis, part], kind="stable")]
        middle = -(-len(ordered) // (2 * SIZE)) * SIZE
        whole += [ordered[middle:], ordered[:middle]]
    return np.concatenate(parts)
