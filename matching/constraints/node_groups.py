"""Nodes by what they have in common: nodes that a question cannot tell apart are asked once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from matching.problem import Node
from matching.shapes import NOWHERE, Ints


@dataclass(frozen=True, slots=True)
class Domains:
    """The places that the values of one node label make of the nodes."""

    key: str
    of_node: Ints
    """Index of the node's value; NOWHERE for a node without the label."""
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alike:
    group: Ints
    """Of each node."""
    models: tuple[Node, ...]
    """One node of each group; it answers for the others."""


class NodeGroups:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._domains: dict[str, Domains] = {}
        self._alike: dict[tuple[tuple[str, ...], bool], Alike] = {}
        self._states = _numbered((node.ready, node.unschedulable, node.taints) for node in nodes)

    def domains(self, key: str) -> Domains:
        found = self._domains.get(key)
        if found is None:
            index: dict[str, int] = {}
            values = (node.labels.get(key) for node in self._nodes)
            numbers = [NOWHERE if value is None else index.setdefault(value, len(index)) for value in values]
            found = self._domains[key] = Domains(key, np.array(numbers, dtype=np.int64), tuple(index))
        return found

    def alike(self, keys: Iterable[str], by_name: bool = False) -> Alike:
        """Groups of nodes with the same state, the same taints and the same values of these labels."""
        wanted = (tuple(sorted(set(keys))), by_name)
        found = self._alike.get(wanted)
        if found is None:
            found = self._alike[wanted] = self._grouped(*wanted)
        return found

    def _grouped(self, keys: tuple[str, ...], by_name: bool) -> Alike:
        group = np.arange(len(self._nodes), dtype=np.int64) if by_name else self._states
        for key in () if by_name else keys:
            domains = self.domains(key)
            group = np.unique(group * (len(domains.values) + 1) + domains.of_node + 1, return_inverse=True)[1]
        _, firsts = np.unique(group, return_index=True)
        return Alike(group.astype(np.int64), tuple(self._nodes[first] for first in firsts.tolist()))


def _numbered(looks: Iterable[Hashable]) -> Ints:
    index: dict[Hashable, int] = {}
    return np.array([index.setdefault(look, len(index)) for look in looks], dtype=np.int64)
