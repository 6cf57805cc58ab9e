"""What the nodes draw with a placement. Power is taken as linear in CPU, between that of an idle and of a full node."""

from __future__ import annotations

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints
from matching.model.arrays import Arrays, share_of_room
from matching.plan import PowerUse

CPU = "cpu"


def power_use(arrays: Arrays, at: Ints) -> PowerUse | None:
    """`at` has the node of each pod. By usage, not by peaks: power is drawn all the time."""
    powers = [node.power for node in arrays.nodes]
    known = [power for power in powers if power is not None]
    if len(known) < len(powers) or not powers or CPU not in arrays.axes:
        return None
    shares = _cpu_shares(arrays, at)
    drawn = [power.at(share) for power, share in zip(known, shares.tolist(), strict=True)]
    there = np.bincount(at[(at != NOWHERE) & ~arrays.of_node], minlength=len(powers))
    idle = np.flatnonzero(there == 0).tolist()
    return PowerUse(sum(drawn), tuple(arrays.nodes[node].name for node in idle), sum(drawn[node] for node in idle))


def _cpu_shares(arrays: Arrays, at: Ints) -> Floats:
    cpu, placed = arrays.axes.index(CPU), at != NOWHERE
    used = arrays.background[cpu] + np.bincount(at[placed], arrays.usage[cpu][placed], len(arrays.nodes))
    return share_of_room(used, arrays.allocatable[cpu])
