"""What the cluster lacks for the pods that stay unhappy, and which constraints stand in the way.

*Amounts*: what the nodes of these pods want beyond their headroom. *One node more*: how many of the pods an empty node
like an existing one would cure, if the heaviest of them went there. *A constraint*: how many of the pods would find a
node that cures them if that constraint alone did not hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.model.ledger import Ledger
from matching.plan import Missing, Relaxation
from matching.planning.expectation import Expectation
from matching.planning.prepared import PreparedProblem
from matching.planning.reasons.obstacles import Kind, Obstacles
from matching.problem import TOLERANCE

_MOST_ASKED = 50
"""Pods whose constraints are looked at."""

_CONSTRAINTS = {
    Kind.TOO_LITTLE: "the requests",
    Kind.TOO_MANY: "the limit of pods per node for",
    Kind.INTER_POD: "the rules between pods",
    Kind.RULE: "the rules for nodes",
}


def missing(prepared: PreparedProblem, at: Ints) -> Missing | None:
    """None when every unhappy pod that may move does, or is expected to be happy where it stays."""
    if not prepared.arrays.unhappy.any():
        return None
    shortage = _Shortage(prepared, at)
    if not len(shortage.left):
        return None
    like, cured = shortage.one_node_more()
    keys = tuple(prepared.arrays.pods[pod].key for pod in shortage.left.tolist())
    return Missing(keys, shortage.amounts(), like, cured, tuple(shortage.relaxations()))


class _Shortage:
    def __init__(self, prepared: PreparedProblem, at: Ints) -> None:
        self._prepared, self._arrays, self._at = prepared, prepared.arrays, at
        self._expectation = Expectation(prepared.arrays)
        self._failures = self._expectation.placed(at)
        arrays = prepared.arrays
        stays = arrays.unhappy & ~arrays.fixed & (at == arrays.current)
        crowded = ~self._expectation.happy(self._failures.loads())
        self.left: Ints = np.flatnonzero(stays & crowded[arrays.current])
        """Pods that may move, and stay where they are expected to stay unhappy."""

    def amounts(self) -> dict[str, float]:
        arrays, nodes = self._arrays, np.unique(self._arrays.current[self.left])
        wanted = self._failures.load[:, nodes] - (1 - arrays.options.headroom) * arrays.allocatable[:, nodes]
        short = wanted.clip(min=0.0).sum(axis=1) * arrays.unit
        return {
            axis: round(more, 6) for axis, more in zip(arrays.axes, short.tolist(), strict=True) if more > TOLERANCE
        }

    def one_node_more(self) -> tuple[str, int]:
        """The name of a node of the most frequent size, and how many of the pods one more like it would cure."""
        arrays, demand = self._arrays, self._expectation.demand
        sizes = [tuple(size) for size in arrays.allocatable.T.tolist()]
        counted = Counter(size for size, open_ in zip(sizes, arrays.open_to_moves.tolist(), strict=True) if open_)
        if not counted:
            return "", 0
        like = sizes.index(max(counted, key=lambda size: (counted[size], size)))
        room = arrays.allocatable[:, like] * (1 - arrays.options.headroom)
        without, gone = self._expectation.placed(self._at), set[int]()
        for pod in self.left[np.argsort(-demand[:, self.left].max(axis=0), kind="stable")].tolist():
            crowded = not self._expectation.happy(without.load_of(int(arrays.current[pod])))
            if crowded and (demand[:, pod] <= room + TOLERANCE).all():
                room = room - demand[:, pod]
                without.move(pod, int(arrays.current[pod]), NOWHERE)
                gone.add(pod)
        calm = self._expectation.happy(without.loads())
        return arrays.nodes[like].name, sum(
            pod in gone or bool(calm[arrays.current[pod]]) for pod in self.left.tolist()
        )

    def relaxations(self) -> Iterator[Relaxation]:
        """The constraint that helps most first."""
        counts = Counter[tuple[str, str]]()
        ledger = Ledger(self._arrays, self._at)
        for pod in self.left[:_MOST_ASKED].tolist():
            workload = self._arrays.pods[pod].workload or self._arrays.pods[pod].key
            kinds = Obstacles(self._prepared, ledger, pod).kind[self._curing(pod)]
            counts.update((_CONSTRAINTS[kind], workload) for kind in {*map(Kind, kinds.tolist())} & _CONSTRAINTS.keys())
        for (constraint, workload), number in counts.most_common():
            yield Relaxation(constraint, workload, number)

    def _curing(self, pod: int) -> Mask:
        """Nodes that would cure the pod if they took it. A rule that refuses every pod is none to relax."""
        curing = self._expectation.happy(self._failures.loads_with(pod)) & self._arrays.open_to_moves
        curing[self._arrays.current[pod]] = False
        return curing
