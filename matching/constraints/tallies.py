"""Counts of pods per place. Every rule between pods is a question to a few of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from matching.constraints.node_groups import Domains
from matching.shapes import NOWHERE, Ints, Mask

Counts = Sequence[Ints]
"""By tally, then by domain. One slot more than there are domains: index NOWHERE reads it, and it stays 0."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts the pods of some kinds in each domain."""

    number: int
    domains: Domains
    place: Ints
    """By node: the domain it counts for; NOWHERE for a node that this tally does not look at."""
    members: Mask
    """By kind of pods: whether they are counted."""

    def where(self, node: int) -> str:
        """`zone a`: the place that the node is in."""
        return place_name(self.domains, int(self.domains.of_node[node]))


class Tallies:
    """Collects them; questions that count the same share one."""

    def __init__(self) -> None:
        self.all: list[Tally] = []
        self._known: dict[tuple[str, bytes, bytes], Tally] = {}

    def of(self, members: Mask, domains: Domains, eligible: Mask | None = None) -> Tally:
        """`eligible` leaves the other nodes out."""
        place = domains.of_node if eligible is None else np.where(eligible, domains.of_node, NOWHERE)
        key = (domains.key, place.tobytes(), members.tobytes())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Tally(len(self.all), domains, place, members)
            self.all.append(found)
        return found


def count(tallies: Iterable[Tally], kind_of_pod: Ints, at: Ints) -> list[Ints]:
    """`at` says for each of those pods which node it is on, or NOWHERE."""
    return [_counted(tally, kind_of_pod, at) for tally in tallies]


def _counted(tally: Tally, kind_of_pod: Ints, at: Ints) -> Ints:
    size = len(tally.domains.values)
    nodes = at[tally.members[kind_of_pod] & (at != NOWHERE)]
    places = tally.place[nodes]
    counts = np.bincount(places[places != NOWHERE], minlength=size + 1)
    return counts.astype(np.int64)


def place_name(domains: Domains, domain: int) -> str:
    if domain == NOWHERE:
        return f"a node without the label {domains.key}"
    return f"{short_key(domains.key)} {domains.values[domain]}"


def short_key(key: str) -> str:
    short = key.rpartition("/")[2]
    return "node" if short == "hostname" else short
