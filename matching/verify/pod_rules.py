"""Rules between pods, checked one move at a time: pod affinity, pod anti-affinity, topology spread and host ports.

A move breaks a rule when kube-scheduler would not accept it at its turn, or when it makes a rule of another pod worse.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from matching.plan import PlannedMove
from matching.problem import HostPort, Node, Pod, PodTerm, Problem, Rules, Spread
from matching.verify.node_rules import admits_by_labels, repelled, selected

_EVERY_ADDRESS = "0.0.0.0"
_RULES_OF = attrgetter("rules")


def pod_rule_violations(problem: Problem, moves: Sequence[PlannedMove], gone: Sequence[str] = ()) -> Iterator[str]:
    """In the order of the plan, whatever the room: each pod leaves its node and is then checked against its target, and
    with a surge before it leaves as well. The pods of `gone` leave before the first move."""
    if not any(
        _has_pod_rules(rules) for rules in {id(rules): rules for rules in map(_RULES_OF, problem.pods)}.values()
    ):
        return
    counts = PodCounts(problem, {pod.key: pod.node for pod in problem.pods} | dict.fromkeys(gone))
    rules, moved = PodRules(counts), {move.pod for move in moves}
    surging = {pod.key for pod in problem.pods if pod.key in moved and pod.strategy.surges}
    for move in moves:
        if move.pod in counts.kinds and move.target in counts.nodes:
            found = rules.violation(move.pod, counts.nodes[move.target], surges=move.pod in surging)
            if found:
                yield f"{move.pod}: may not go to {move.target} at its turn: {found}"
        rules.move(move.pod, move.target)


@dataclass(frozen=True, slots=True)
class PodKind:
    """All that a rule between pods can see of a pod."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    rules: Rules
    leaving: bool
    code: int = field(compare=False)
    """The hash. Kinds are looked up often, and hashing rules takes long."""

    def __hash__(self) -> int:
        return self.code


class PodCounts:
    """How many pods of each kind are on each node and in each topology domain. `ends` has the node of each pod by key.
    Only pods that have a rule or that a rule selects are counted."""

    def __init__(self, problem: Problem, ends: Mapping[str, str | None]) -> None:
        self.nodes = {node.name: node for node in problem.nodes}
        self._namespaces = problem.namespaces
        self._matches: dict[tuple[PodTerm, str, PodKind], bool] = {}
        distinct = {id(pod.rules): pod.rules for pod in problem.pods}
        ruling = {key: rules for key, rules in distinct.items() if _has_pod_rules(rules)}
        terms = [term for rules in ruling.values() for term in (*rules.pod_affinity, *rules.pod_anti_affinity)]
        spreads = [spread for rules in ruling.values() for spread in rules.spread]
        self._keys = {term.topology_key for term in terms} | {spread.topology_key for spread in spreads}
        self._selectors = {term.selector for term in terms} | {spread.selector for spread in spreads}
        self.kinds = self._kinds_of(problem) if ruling else {}
        self.where: dict[str, str | None] = {}
        self.on_node: defaultdict[str, Counter[PodKind]] = defaultdict(Counter)
        self.by_domain: defaultdict[tuple[str, str], Counter[PodKind]] = defaultdict(Counter)
        for key in self.kinds:
            self.move(key, ends.get(key))

    def move(self, key: str, target: str | None) -> None:
        """Does nothing for a pod that is not counted."""
        kind = self.kinds.get(key)
        if kind is None:
            return
        self._add(kind, self.where.get(key), -1)
        self._add(kind, target, 1)
        self.where[key] = target

    def matches(self, term: PodTerm, owner: PodKind, other: PodKind) -> bool:
        """Whether a term of the owner's rules selects the other pod."""
        question = (term, owner.namespace, other)
        known = self._matches.get(question)
        if known is None:
            known = self._matches[question] = self._selects(term, owner.namespace, other)
        return known

    def in_domain(self, key: str, node: Node) -> Counter[PodKind]:
        """The pods on nodes with the same value of that label; none for a node without it."""
        value = node.labels.get(key)
        return Counter() if value is None else self.by_domain[key, value]

    def _add(self, kind: PodKind, name: str | None, by: int) -> None:
        node = self.nodes.get(name or "")
        if node is None:
            return
        counters = [self.on_node[node.name]]
        counters += [self.by_domain[key, node.labels[key]] for key in self._keys if key in node.labels]
        for counter in counters:
            counter[kind] += by
            if not counter[kind]:
                del counter[kind]

    def _selects(self, term: PodTerm, namespace: str, other: PodKind) -> bool:
        if not term.namespaces and term.namespace_selector is None:
            inside = other.namespace == namespace
        else:
            labels = self._namespaces.get(other.namespace, {})
            inside = other.namespace in term.namespaces or selected(term.namespace_selector, labels)
        return inside and selected(term.selector, dict(other.labels))

    def _kinds_of(self, problem: Problem) -> dict[str, PodKind]:
        seen: dict[tuple[int, int, str, bool], PodKind | None] = {}
        kinds = {}
        for pod in problem.pods:
            parts = (id(pod.labels), id(pod.rules), pod.key.partition("/")[0], pod.leaving)
            if parts not in seen:
                seen[parts] = self._kind(pod)
            kind = seen[parts]
            if kind is not None:
                kinds[pod.key] = kind
        return kinds

    def _kind(self, pod: Pod) -> PodKind | None:
        """Namespaces are not looked at here: counting a pod too many does no harm."""
        if not _has_pod_rules(pod.rules) and not any(selected(selector, pod.labels) for selector in self._selectors):
            return None
        labels = tuple(sorted(pod.labels.items()))
        return PodKind(pod.namespace, labels, pod.rules, pod.leaving, hash((pod.namespace, labels, pod.rules)))


class SpreadCounts:
    """How many pods one topology spread constraint counts in each domain."""

    def __init__(self, owner: PodKind, spread: Spread, nodes: Mapping[str, Node]) -> None:
        self.spread = spread
        self._owner = owner
        self._domain = {
            name: node.labels[spread.topology_key]
            for name, node in nodes.items()
            if spread_counts_node(owner, spread, node)
        }
        self._counts = dict.fromkeys(self._domain.values(), 0)
        self._counted: dict[PodKind, bool] = {}

    def counts(self, kind: PodKind) -> bool:
        known = self._counted.get(kind)
        if known is None:
            known = self._counted[kind] = spread_counts_pod(self._owner, self.spread, kind)
        return known

    def add(self, kind: PodKind, node: str | None, by: int) -> None:
        if node in self._domain and self.counts(kind):
            self._counts[self._domain[node]] += by

    def skew(self) -> int:
        return max(self._counts.values(), default=0) - self._fewest()

    def allows(self, kind: PodKind, node: Node) -> bool:
        """The constraint of that kind itself, with the pod not counted anywhere."""
        value = node.labels.get(self.spread.topology_key)
        if value is None:
            return False
        itself = int(selected(self.spread.selector, dict(kind.labels)))
        return self._counts.get(value, 0) + itself - self._fewest() <= self.spread.max_skew

    def _fewest(self) -> int:
        enough = self._counts and len(self._counts) >= self.spread.min_domains
        return min(self._counts.values()) if enough else 0


def spread_counts_pod(owner: PodKind, spread: Spread, kind: PodKind) -> bool:
    """Pods of the same namespace that are not being deleted; an empty selector counts none."""
    selector = spread.selector
    staying = kind.namespace == owner.namespace and not kind.leaving
    return staying and selector is not None and bool(selector.requirements) and selected(selector, dict(kind.labels))


def spread_counts_node(owner: PodKind, spread: Spread, node: Node) -> bool:
    return (
        all(each.topology_key in node.labels for each in owner.rules.spread)
        and (not spread.honor_affinity or admits_by_labels(owner.rules, node))
        and (not spread.honor_taints or not repelled(owner.rules, node))
    )


class PodRules:
    """What forbids moving a pod to a node while all other pods are where `counts` has them."""

    def __init__(self, counts: PodCounts) -> None:
        self._counts = counts
        self._kinds = tuple(set(counts.kinds.values()))
        self._anti_affinity_keys = {term.topology_key for kind in self._kinds for term in kind.rules.pod_anti_affinity}
        self._spreads = {
            (kind, spread): SpreadCounts(kind, spread, counts.nodes)
            for kind in self._kinds
            for spread in kind.rules.spread
        }
        for pod, name in counts.where.items():
            self._add_to_spreads(pod, name, 1)

    def move(self, pod: str, target: str | None) -> None:
        """Does nothing for a pod that no rule is about."""
        if pod in self._counts.kinds:
            self._add_to_spreads(pod, self._counts.where[pod], -1)
            self._add_to_spreads(pod, target, 1)
            self._counts.move(pod, target)

    def violation(self, pod: str, node: Node, *, surges: bool = False) -> str:
        """Empty when no rule forbids the move. The pod is back on its node when this returns."""
        counts, kind, current = self._counts, self._counts.kinds[pod], self._counts.where[pod]
        runs = current in counts.nodes and current != node.name
        counting = [spread for spread in self._spreads.values() if runs and spread.counts(kind)]
        allowed = [max(spread.spread.max_skew, spread.skew()) for spread in counting]
        beside = self._filtered(kind, node) if surges and runs else ""
        self.move(pod, None)
        found = self._filtered(kind, node) or (beside and f"{beside}, while its old pod is still there")
        if runs and not found:
            found = self._required_by_others(kind, counts.nodes[current or ""], node)
            self.move(pod, node.name)
            for spread, most in zip(counting, allowed, strict=True):
                if spread.skew() > most:
                    found = found or f"a skew over {spread.spread.topology_key} would be {spread.skew()}, not {most}"
        self.move(pod, current)
        return found

    def _add_to_spreads(self, pod: str, node: str | None, by: int) -> None:
        for spread in self._spreads.values():
            spread.add(self._counts.kinds[pod], node, by)

    def _filtered(self, kind: PodKind, node: Node) -> str:
        """kube-scheduler's filters."""
        counts = self._counts
        if not self._affinity_met(kind, node):
            return "its required affinity is not met there"
        for term in kind.rules.pod_anti_affinity:
            if any(counts.matches(term, kind, other) for other in counts.in_domain(term.topology_key, node)):
                return f"its anti-affinity over {term.topology_key}"
        if self._repelled_by_others(kind, node):
            return "the anti-affinity of a pod that is there"
        for spread in kind.rules.spread:
            if not self._spreads[kind, spread].allows(kind, node):
                return f"its spread over {spread.topology_key}"
        taken = [port for other in counts.on_node[node.name] for port in other.rules.ports]
        if any(ports_conflict(port, other) for port in kind.rules.ports for other in taken):
            return "a host port is taken"
        return ""

    def _affinity_met(self, kind: PodKind, node: Node) -> bool:
        terms = kind.rules.pod_affinity
        if any(term.topology_key not in node.labels for term in terms):
            return False
        if all(self._matching(terms, kind, self._counts.in_domain(term.topology_key, node)) for term in terms):
            return True
        if not all(self._counts.matches(term, kind, kind) for term in terms):
            return False
        return not any(
            self._matching(terms, kind, there)
            for (key, _), there in self._counts.by_domain.items()
            if any(term.topology_key == key for term in terms)
        )

    def _matching(self, terms: Sequence[PodTerm], owner: PodKind, there: Mapping[PodKind, int]) -> int:
        """How many of those pods match all terms."""
        return sum(
            number for other, number in there.items() if all(self._counts.matches(term, owner, other) for term in terms)
        )

    def _repelled_by_others(self, kind: PodKind, node: Node) -> bool:
        return any(
            term.topology_key == key and self._counts.matches(term, other, kind)
            for key in self._anti_affinity_keys
            for other in self._counts.in_domain(key, node)
            for term in other.rules.pod_anti_affinity
        )

    def _required_by_others(self, kind: PodKind, current: Node, node: Node) -> str:
        """The pod has left `current`: is it the last one that a pod there requires by its affinity?"""
        for owner in self._kinds:
            terms = owner.rules.pod_affinity
            if not terms or not all(self._counts.matches(term, owner, kind) for term in terms):
                continue
            for term in terms:
                there = self._counts.in_domain(term.topology_key, current)
                leaves = node.labels.get(term.topology_key) != current.labels.get(term.topology_key)
                itself = all(self._counts.matches(each, owner, owner) for each in terms)
                if leaves and owner in there and self._matching(terms, owner, there) <= itself:
                    return f"a pod of {owner.namespace} requires it where it is, over {term.topology_key}"
        return ""


def ports_conflict(wanted: HostPort, taken: HostPort) -> bool:
    if (wanted.port, wanted.protocol) != (taken.port, taken.protocol):
        return False
    return wanted.ip == taken.ip or _EVERY_ADDRESS in {wanted.ip, taken.ip}


def _has_pod_rules(rules: Rules) -> bool:
    return bool(rules.pod_affinity or rules.pod_anti_affinity or rules.spread or rules.ports)
