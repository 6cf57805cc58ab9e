"""Whether rules between pods would let a pod join each node once the movable pods that rank below it are gone there.

The same rules as in `neighbours`, asked for all nodes at once: everybody is where the plan ends, but for the pod
itself, who is nowhere, and those on the node in question that rank below it. Pods are asked in rank order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from matching.certificate.crowd import Crowd, Look, selected
from matching.certificate.evenness import counted, looked_at
from matching.certificate.neighbours import clash
from matching.certificate.objections import Apart, Company, KeepsEven, Objection, OwnSpread, StillNeeded
from matching.certificate.tally import Domain, Tally
from matching.certificate.view import NOWHERE, Flags, Ints, View
from matching.problem import PodTerm, Spread


class Beside:
    def __init__(self, view: View, ends: Mapping[str, str | None]) -> None:
        self._end = view.end
        self._everywhere: Flags = np.ones(len(view.nodes), dtype=bool)
        crowd = Crowd(view.problem, ends)
        known = list(dict.fromkeys(crowd.looks.values()))
        number = {look: at for at, look in enumerate(known)}
        seen = (crowd.looks.get(pod.key) for pod in view.pods)
        self._look: Ints = np.array([-1 if look is None else number[look] for look in seen], dtype=int)
        self.concerned: Flags = self._look >= 0
        """By row: some rule between pods is its own or about it."""
        names = {node.name: at for at, node in enumerate(view.nodes)}
        everybody = [(number[look], names.get(ends.get(key) or "", NOWHERE)) for key, look in crowd.looks.items()]
        rows = np.stack([self._look, self._end], axis=1)[self.concerned]
        builder = _Builder(view, crowd, known, (np.array(everybody, dtype=int).reshape(-1, 2), rows))
        self._objections = [list(builder.objections(look)) for look in known]
        self._tallies = [[tally for tally in builder.tallies() if tally.members[at]] for at in range(len(known))]

    def fits(self, row: int) -> Flags:
        """By node, for a row that is concerned."""
        look, end = int(self._look[row]), int(self._end[row])
        fits: Flags = self._everywhere.copy()
        for objection in self._objections[look]:
            fits &= objection.allows(look, end)
        return fits

    def passes(self, row: int) -> None:
        """The pod ranks above all that are asked from now on."""
        end = int(self._end[row])
        if end != NOWHERE and self.concerned[row]:
            for tally in self._tallies[int(self._look[row])]:
                tally.waiting[end] -= 1


class _Builder:
    """From the rules of each look to objections; questions that count the same share a tally."""

    def __init__(self, view: View, crowd: Crowd, looks: list[Look], pods: tuple[Ints, Ints]) -> None:
        """`pods`: everybody, and those who may move, each by look and end."""
        self._nodes, self._crowd, self._looks, self._pods = view.nodes, crowd, looks, pods
        self._number = {look: at for at, look in enumerate(looks)}
        self._known: dict[tuple[bytes, bytes, int], Tally] = {}
        self._domains: dict[str, Domain] = {}
        self._spreads: dict[tuple[Look, Spread], Tally] = {}
        self._single = Domain.of([node.name for node in view.nodes])

    def tallies(self) -> list[Tally]:
        return list(self._known.values())

    def objections(self, look: Look) -> Iterator[Objection]:
        yield from {id(tally): Apart(tally) for tally in self._shunned(look)}.values()
        terms = look.rules.pod_affinity
        if terms:
            company = self._meant(look, terms)
            near = [self._tally(company, self._domain(term.topology_key)) for term in terms]
            yield Company(near, likes_itself=bool(company[self._number[look]]))
        for spread in look.rules.spread:
            yield self._own_spread(look, spread)
        yield from self._duties(look)

    def _shunned(self, look: Look) -> Iterator[Tally]:
        for term in look.rules.pod_anti_affinity:
            yield self._tally(self._meant(look, (term,)), self._domain(term.topology_key))
        keys = {term.topology_key for other in self._looks for term in other.rules.pod_anti_affinity}
        for key in sorted(keys):
            owners = [self._shuns(other, key, look) for other in self._looks]
            if any(owners):
                yield self._tally(np.array(owners, dtype=bool), self._domain(key))
        if look.rules.ports:
            taken = [
                any(clash(mine, port) for mine in look.rules.ports for port in other.rules.ports)
                for other in self._looks
            ]
            yield self._tally(np.array(taken, dtype=bool), self._single)

    def _shuns(self, owner: Look, key: str, other: Look) -> bool:
        terms = owner.rules.pod_anti_affinity
        return any(term.topology_key == key and self._crowd.about(term, owner, other) for term in terms)

    def _own_spread(self, look: Look, spread: Spread) -> OwnSpread:
        tally, key = self._spread(look, spread), spread.topology_key
        inside = [node.labels[key] if looked_at(look, spread, node) else None for node in self._nodes]
        labels = Domain.of([node.labels.get(key) for node in self._nodes], known=inside)
        return OwnSpread(tally, labels, spread, selected(spread.selector, dict(look.labels)))

    def _duties(self, look: Look) -> Iterator[Objection]:
        mine = self._number[look]
        for owner in self._looks:
            for spread in owner.rules.spread:
                tally = self._spread(owner, spread)
                if tally.members[mine]:
                    yield KeepsEven(tally, spread)
            terms = owner.rules.pod_affinity
            if terms and all(self._crowd.about(term, owner, look) for term in terms):
                itself = all(self._crowd.about(term, owner, owner) for term in terms)
                just_owner = np.arange(len(self._looks)) == self._number[owner]
                for domain in (self._domain(term.topology_key) for term in terms):
                    matches = self._tally(self._meant(owner, terms), domain)
                    yield StillNeeded(self._tally(just_owner, domain), matches, itself)

    def _spread(self, owner: Look, spread: Spread) -> Tally:
        if (owner, spread) not in self._spreads:
            key = spread.topology_key
            values = [node.labels[key] if looked_at(owner, spread, node) else None for node in self._nodes]
            members = np.array([counted(owner, spread, look) for look in self._looks], dtype=bool)
            self._spreads[owner, spread] = self._tally(members, Domain.of(values))
        return self._spreads[owner, spread]

    def _meant(self, owner: Look, terms: tuple[PodTerm, ...]) -> Flags:
        """By look: whether all of those terms of the owner's are about it."""
        meant = [all(self._crowd.about(term, owner, other) for term in terms) for other in self._looks]
        return np.array(meant, dtype=bool)

    def _domain(self, key: str) -> Domain:
        if key not in self._domains:
            self._domains[key] = Domain.of([node.labels.get(key) for node in self._nodes])
        return self._domains[key]

    def _tally(self, members: Flags, domain: Domain) -> Tally:
        key = (members.tobytes(), domain.place.tobytes(), domain.number)
        if key not in self._known:
            self._known[key] = Tally(members, domain, *self._pods)
        return self._known[key]
