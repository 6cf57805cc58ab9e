"""What is missing when not everybody gets a node: how much of which resource, on which kind of node.

Pods are told together when their rules ask for the same kind of node. What they request is held against all that is
left on such nodes in the end; where that would be enough in all, what the nearest single node lacks is named instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from matching.arrays import NOWHERE, TOLERANCE, Arrays, Floats, Ints
from matching.case import Case
from matching.constraints import requests
from matching.ledger import Ledger
from matching.problem import Requirement, Rules, Term
from matching.reasons.obstacles import some
from matching.reasons.wording import amount, plural

ALL_NODES = "all nodes"


def missing(case: Case, at: Ints) -> Iterator[str]:
    """One sentence per kind of node, for the pending pods that got none; the highest priority is named first."""
    arrays = case.arrays
    homeless = case.ranking[(arrays.pending & (at == NOWHERE))[case.ranking]]
    alike: defaultdict[str, list[int]] = defaultdict(list)
    for pod in homeless.tolist():
        alike[kind_of_nodes(arrays.pods[pod].rules)].append(pod)
    ledger = Ledger(arrays, at)
    for kind, pods in alike.items():
        who = f"no node for {plural(len(pods), 'pending pod')} ({some(arrays.pods[pod].key for pod in pods)})"
        yield f"{who}: {_lacking(case, ledger, kind, pods)}"


def kind_of_nodes(rules: Rules) -> str:
    """The nodes that a pod's own rules select, in words."""
    parts = [" and ".join(f"{key}={value}" for key, value in rules.node_selector)]
    parts += [_any_of(terms) for terms in (rules.node_affinity, *rules.volumes) if terms is not None]
    parts += [f"{key} in ({', '.join(values)})" for key, values in rules.volume_zones]
    selected = " and ".join(part for part in parts if part)
    return f"nodes with {selected}" if selected else ALL_NODES


def _lacking(case: Case, ledger: Ledger, kind: str, pods: list[int]) -> str:
    arrays = case.arrays
    open_to = case.candidates.of(pods[0])
    if not open_to.any():
        return f"of {kind} there is none that would take {'it' if len(pods) == 1 else 'them'} even if it were empty"
    asked = arrays.request[:, pods].sum(axis=1)
    left = ledger.free[:, open_to].clip(min=0.0).sum(axis=1)
    if found := _amounts(arrays, asked - left):
        return f"on {kind} at least {found} more would be needed ({_amounts(arrays, left) or 'nothing'} left in all)"
    nodes = np.flatnonzero(open_to)
    short = requests.shortfall(ledger.free[:, nodes], arrays.request[:, pods[0]])
    nearest = int(short.sum(axis=0).argmin())
    if found := _amounts(arrays, short[:, nearest]):
        name = arrays.nodes[nodes[nearest]].name
        return f"on {kind} enough is left in all, but not on one: for {arrays.pods[pods[0]].key} {name} lacks {found}"
    return f"on {kind} the requests would fit; what stands in the way is told for each pod"


def _amounts(arrays: Arrays, shares: Floats) -> str:
    found = zip(arrays.axes, shares, (shares * arrays.unit).tolist(), strict=True)
    return " and ".join(amount(axis, value) for axis, share, value in found if share > TOLERANCE)


def _any_of(terms: tuple[Term, ...]) -> str:
    texts = [" and ".join(map(_requirement, (*term.expressions, *term.fields))) for term in terms]
    return texts[0] if len(texts) == 1 else "(" + " or ".join(texts) + ")"


def _requirement(asked: Requirement) -> str:
    values = ", ".join(asked.values)
    match asked.operator:
        case "In":
            return f"{asked.key}={values}" if len(asked.values) == 1 else f"{asked.key} in ({values})"
        case "NotIn":
            return f"{asked.key} not in ({values})"
        case "Exists":
            return asked.key
        case "DoesNotExist":
            return f"no {asked.key}"
        case other:
            return f"{asked.key} {'>' if other == 'Gt' else '<'} {values}"
