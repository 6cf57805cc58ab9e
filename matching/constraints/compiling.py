"""From the rules of each kind of pods to tallies and checks, as kube-scheduler's filters mean them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matching.constraints.checks import ApartFrom, Check, Evenness, NearOthers, Spreads
from matching.constraints.counting import Counting
from matching.constraints.duties import Duty, KeepsEven, StillNeeded
from matching.constraints.pod_kinds import PodKind
from matching.constraints.tallies import Tally
from matching.constraints.who import Namespaces, Who, selects, text, whom
from matching.problem import HostPort, Node, Rules, Spread
from matching.shapes import NOWHERE, Mask

EVERY_ADDRESS = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class Compiled:
    tallies: tuple[Tally, ...]
    checks: tuple[tuple[Check, ...], ...]
    """By kind of pods."""
    duties: tuple[tuple[Duty, ...], ...]
    """By kind of pods."""


class Compiler:
    def __init__(self, kinds: Sequence[PodKind], nodes: Sequence[Node], namespaces: Namespaces) -> None:
        self._kinds = kinds
        self._counting = Counting(kinds, nodes, namespaces)
        self._checks: list[list[Check]] = [[] for _ in kinds]
        self._duties: list[list[Duty]] = [[] for _ in kinds]
        self._required: dict[int, tuple[Tally, Mask]] = {}
        """By number of the tally that counts the matches: who requires one of them beside it."""
        self._shunned: dict[tuple[Who, str], Mask] = {}
        """Anti-affinity by whom it is about and over what: who has it."""
        self._spreads: dict[tuple[int, int, int], Evenness] = {}
        self._ports: dict[HostPort, Mask] = {}

    def compiled(self) -> Compiled:
        for number, kind in enumerate(self._kinds):
            self._add_affinity(number, kind)
            self._add_anti_affinity(number, kind)
            self._add_spreads(number, kind)
            self._note_ports(number, kind.rules)
        self._add_anti_affinity_of_others()
        self._add_ports()
        self._add_duties_of_movers()
        checks, duties = tuple(map(tuple, self._checks)), tuple(map(tuple, self._duties))
        return Compiled(tuple(self._counting.tallies.all), checks, duties)

    def _add_affinity(self, number: int, kind: PodKind) -> None:
        """One pod has to match all terms, as kube-scheduler counts."""
        terms = kind.rules.pod_affinity
        if not terms:
            return
        who = tuple(whom(term, kind.namespace) for term in terms)
        matches = self._counting.who_matches(who)
        places = [self._counting.domains(term.topology_key) for term in terms]
        found = [self._counting.tallies.of(matches, domains) for domains in places]
        named = tuple(zip(found, map(str, who), strict=True))
        self._checks[number].append(NearOthers(named, likes_itself=bool(matches[number])))
        for tally in found:
            _, owners = self._required.setdefault(tally.number, (tally, self._counting.nobody()))
            owners[number] = True

    def _add_anti_affinity(self, number: int, kind: PodKind) -> None:
        for term in kind.rules.pod_anti_affinity:
            tally = self._counting.of_term(term, kind)
            self._checks[number].append(ApartFrom(tally, "anti-affinity with {who} on {where}"))
            what = (whom(term, kind.namespace), term.topology_key)
            self._shunned.setdefault(what, self._counting.nobody())[number] = True

    def _add_anti_affinity_of_others(self) -> None:
        for (who, key), owners in self._shunned.items():
            tally = self._counting.tallies.of(owners, self._counting.domains(key))
            check = ApartFrom(tally, "anti-affinity of {who} on {where}")
            for number in np.flatnonzero(self._counting.who_matches((who,))).tolist():
                self._checks[number].append(check)

    def _add_spreads(self, number: int, kind: PodKind) -> None:
        for spread in kind.rules.spread:
            itself = selects(spread.selector, kind.labels)
            self._checks[number].append(Spreads(self._evenness(kind, spread), counts_itself=itself))

    def _evenness(self, kind: PodKind, spread: Spread) -> Evenness:
        tally = self._counting.of_spread(spread, kind.rules.spread, kind)
        key = (tally.number, spread.max_skew, spread.min_domains)
        found = self._spreads.get(key)
        if found is None:
            eligible = np.unique(tally.place[tally.place != NOWHERE])
            who = text(spread.selector)
            found = self._spreads[key] = Evenness(tally, eligible, spread.max_skew, spread.min_domains, who)
        return found

    def _note_ports(self, number: int, rules: Rules) -> None:
        for port in rules.ports:
            self._ports.setdefault(port, self._counting.nobody())[number] = True

    def _add_ports(self) -> None:
        nodes = self._counting.single_nodes
        taken = {port: self._counting.tallies.of(users, nodes) for port, users in self._ports.items()}
        for wanted, users in self._ports.items():
            words = f"host port {wanted.port}/{wanted.protocol} is taken by {{who}}"
            refusing = {tally.number: tally for port, tally in taken.items() if _clash(wanted, port)}
            for number in np.flatnonzero(users).tolist():
                self._checks[number] += [ApartFrom(tally, words) for tally in refusing.values()]

    def _add_duties_of_movers(self) -> None:
        for tally, owners in self._required.values():
            lone = self._counting.tallies.of(owners & ~tally.members, tally.domains)
            likes = self._counting.tallies.of(owners & tally.members, tally.domains)
            self._add_for(tally, StillNeeded(tally, lone, likes))
        for evenness in self._spreads.values():
            self._add_for(evenness.tally, KeepsEven(evenness))

    def _add_for(self, tally: Tally, duty: Duty) -> None:
        for number in np.flatnonzero(tally.members).tolist():
            self._duties[number].append(duty)


def _clash(wanted: HostPort, taken: HostPort) -> bool:
    same = (wanted.port, wanted.protocol) == (taken.port, taken.protocol)
    return same and (wanted.ip == taken.ip or EVERY_ADDRESS in (wanted.ip, taken.ip))
