"""What a placement looks like in a few numbers."""

from __future__ import annotations

from matching.arrays import NOWHERE, TOLERANCE, Arrays, Ints
from matching.ledger import Ledger
from matching.plan import Measures


def measure(arrays: Arrays, at: Ints) -> Measures:
    """`at` says for each pod which node it is on. Pending counts every pod without a node, fixed ones too, but not
    those on nodes that are not in the problem."""
    loads = Ledger(arrays, at).shares().max(axis=0, initial=0.0)
    by_name = {node.name: float(load) for node, load in zip(arrays.nodes, loads, strict=True)}
    ready = [by_name[node.name] for node in arrays.nodes if node.ready]
    limit = 1 - arrays.options.headroom + TOLERANCE
    return Measures(
        node_load=by_name,
        spread=max(ready) - min(ready) if ready else 0.0,
        overloaded=tuple(name for name, load in by_name.items() if load > limit),
        pending=int(((at == NOWHERE) & ((arrays.home != NOWHERE) | arrays.without_node)).sum()),
    )
