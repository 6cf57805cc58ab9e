"""Rules between pods, checked move by move: would kube-scheduler accept it at its turn, and is nobody worse off?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from matching.certificate.crowd import Crowd, Look
from matching.certificate.evenness import Table
from matching.plan import PlannedMove
from matching.problem import HostPort, Node, PodTerm, Problem

_EVERY_ADDRESS = "0.0.0.0"


def broken_rules(problem: Problem, moves: Sequence[PlannedMove], gone: Sequence[str] = ()) -> Iterator[str]:
    """In the order of the plan, as if room were no matter: each pod is gone from where it was, then asks. Those `gone`
    leave before the first move."""
    crowd = Crowd(problem, {pod.key: pod.node for pod in problem.pods} | dict.fromkeys(gone))
    if not crowd.looks:
        return
    neighbourhood = Neighbourhood(crowd)
    for move in moves:
        if move.pod in crowd.looks and move.target in crowd.nodes:
            found = neighbourhood.objection(move.pod, crowd.nodes[move.target])
            if found:
                yield f"{move.pod}: may not go to {move.target} at its turn: {found}"
        neighbourhood.move(move.pod, move.target)


class Neighbourhood:
    """What stands against a pod's going to a node as things are, asked of every rule in turn."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._looks = tuple(set(crowd.looks.values()))
        self._anti_keys = {term.topology_key for look in self._looks for term in look.rules.pod_anti_affinity}
        self._tables = {
            (look, spread): Table(look, spread, crowd.nodes) for look in self._looks for spread in look.rules.spread
        }
        for pod, name in crowd.where.items():
            self._note(pod, name, 1)

    def move(self, pod: str, target: str | None) -> None:
        """It is there now. Nothing happens for a pod that no rule is about."""
        if pod in self._crowd.looks:
            self._note(pod, self._crowd.where[pod], -1)
            self._note(pod, target, 1)
            self._crowd.move(pod, target)

    def objection(self, pod: str, node: Node) -> str:
        """Empty when there is none. Everybody is where they were when this returns."""
        crowd, look, home = self._crowd, self._crowd.looks[pod], self._crowd.where[pod]
        runs = home in crowd.nodes and home != node.name
        counting = [table for table in self._tables.values() if runs and table.counts(look)]
        allowed = [max(table.spread.max_skew, table.skew()) for table in counting]
        self.move(pod, None)
        found = self._refused(look, node)
        if runs and not found:
            found = self._deserted(look, crowd.nodes[home or ""], node)
            self.move(pod, node.name)
            for table, most in zip(counting, allowed, strict=True):
                if table.skew() > most:
                    found = found or f"a skew over {table.spread.topology_key} would be {table.skew()}, not {most}"
        self.move(pod, home)
        return found

    def _note(self, pod: str, node: str | None, by: int) -> None:
        for table in self._tables.values():
            table.count(self._crowd.looks[pod], node, by)

    def _refused(self, look: Look, node: Node) -> str:
        """kube-scheduler's filters."""
        crowd = self._crowd
        if not self._in_company(look, node):
            return "its required affinity is not met there"
        for term in look.rules.pod_anti_affinity:
            if any(crowd.about(term, look, other) for other in crowd.place(term.topology_key, node)):
                return f"its anti-affinity over {term.topology_key}"
        if self._shunned(look, node):
            return "the anti-affinity of a pod that is there"
        for spread in look.rules.spread:
            if not self._tables[look, spread].takes(look, node):
                return f"its spread over {spread.topology_key}"
        taken = [port for other in crowd.on_node[node.name] for port in other.rules.ports]
        if any(clash(port, other) for port in look.rules.ports for other in taken):
            return "a host port is taken"
        return ""

    def _in_company(self, look: Look, node: Node) -> bool:
        terms = look.rules.pod_affinity
        if any(term.topology_key not in node.labels for term in terms):
            return False
        if all(self._matched(terms, look, self._crowd.place(term.topology_key, node)) for term in terms):
            return True
        if not all(self._crowd.about(term, look, look) for term in terms):
            return False
        return not any(
            self._matched(terms, look, there)
            for (key, _), there in self._crowd.at_place.items()
            if any(term.topology_key == key for term in terms)
        )

    def _matched(self, terms: Sequence[PodTerm], look: Look, there: Mapping[Look, int]) -> int:
        """How many of them match all terms."""
        return sum(
            number for other, number in there.items() if all(self._crowd.about(term, look, other) for term in terms)
        )

    def _shunned(self, look: Look, node: Node) -> bool:
        return any(
            term.topology_key == key and self._crowd.about(term, other, look)
            for key in self._anti_keys
            for other in self._crowd.place(key, node)
            for term in other.rules.pod_anti_affinity
        )

    def _deserted(self, look: Look, home: Node, node: Node) -> str:
        """The pod is gone from `home`: does somebody there miss the last one it needs beside it?"""
        for owner in self._looks:
            terms = owner.rules.pod_affinity
            if not terms or not all(self._crowd.about(term, owner, look) for term in terms):
                continue
            for term in terms:
                there = self._crowd.place(term.topology_key, home)
                moved_away = node.labels.get(term.topology_key) != home.labels.get(term.topology_key)
                itself = all(self._crowd.about(each, owner, owner) for each in terms)
                if moved_away and owner in there and self._matched(terms, owner, there) <= itself:
                    return f"a pod of {owner.namespace} requires it where it is, over {term.topology_key}"
        return ""


def clash(wanted: HostPort, taken: HostPort) -> bool:
    if (wanted.port, wanted.protocol) != (taken.port, taken.protocol):
        return False
    return wanted.ip == taken.ip or _EVERY_ADDRESS in {wanted.ip, taken.ip}
