"""Rules between pods and soft constraints for the reference: one pod, one node, everything counted anew each time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from matching.problem import Node, Pod, PodTerm, Problem, Spread
from matching.verify.node_rules import admits_by_labels, matches, repelled, repels, selected


class PlacedPods:
    """Pods and the names of the nodes they are on. A name that is not a node of the problem counts as none."""

    def __init__(self, problem: Problem, where: Mapping[str, str | None]) -> None:
        self.problem, self.where = problem, where
        self._nodes = {node.name: node for node in problem.nodes}
        self.all = [(pod, node) for pod in problem.pods if (node := self.node_of(pod)) is not None]

    def node_of(self, pod: Pod) -> Node | None:
        return self._nodes.get(self.where.get(pod.key) or "")

    def moved(self, pod: Pod, node: Node | None) -> PlacedPods:
        return PlacedPods(self.problem, {**self.where, pod.key: None if node is None else node.name})

    def allows(self, pod: Pod, node: Node) -> bool:
        """kube-scheduler would accept the pod on the node once it is gone from its own, and if it has one, no other
        pod's required affinity and no topology spread gets worse."""
        current, without, after = self.node_of(pod), self.moved(pod, None), self.moved(pod, node)
        if not without.accepts(pod, node):
            return False
        return current in (None, node) or not (after.lost_affinity(self) or after.more_skewed(self))

    def accepts(self, pod: Pod, node: Node) -> bool:
        return (
            self._affinity_met(pod, node)
            and not any(self._kept_apart(pod, node, other, there) for other, there in self.all)
            and all(self._spread_met(pod, node, spread) for spread in pod.rules.spread)
            and all(self._can_attach(pod, node, driver) for driver in node.volume_limits)
        )

    def _affinity_met(self, pod: Pod, node: Node) -> bool:
        """A pod that matches all terms in the domain of each, or none anywhere if the pod matches its own terms."""
        terms = pod.rules.pod_affinity
        if any(term.topology_key not in node.labels for term in terms):
            return False
        matching = [there for other, there in self.all if all(self.selects(term, pod, other) for term in terms)]
        if all(any(same_domain(term.topology_key, node, there) for there in matching) for term in terms):
            return True
        anywhere = any(term.topology_key in there.labels for term in terms for there in matching)
        return not anywhere and all(self.selects(term, pod, pod) for term in terms)

    def _kept_apart(self, pod: Pod, node: Node, other: Pod, there: Node) -> bool:
        """By the anti-affinity of one of the two, or by host ports."""
        for owner, against in ((pod, other), (other, pod)):
            for term in owner.rules.pod_anti_affinity:
                if same_domain(term.topology_key, node, there) and self.selects(term, owner, against):
                    return True
        return there is node and any(
            (mine.port, mine.protocol) == (taken.port, taken.protocol)
            and (mine.ip == taken.ip or "0.0.0.0" in (mine.ip, taken.ip))
            for mine in pod.rules.ports
            for taken in other.rules.ports
        )

    def _spread_met(self, pod: Pod, node: Node, spread: Spread) -> bool:
        counts = self.spread_counts(pod, spread, pod.rules.spread)
        if spread.topology_key not in node.labels:
            return False
        here = counts.get(node.labels[spread.topology_key], 0) + selected(spread.selector, pod.labels)
        return here - fewest(spread, counts) <= spread.max_skew

    def _can_attach(self, pod: Pod, node: Node, driver: str) -> bool:
        """A volume that several pods use counts once, one that is attached without a pod as well."""
        used = {volume for other, there in self.all if there is node for volume in other.volumes}
        new = [volume for volume in set(pod.volumes) - used if volume.driver == driver]
        attached = [volume for volume in used | set(node.attached) if volume.driver == driver]
        return not new or len(attached) + len(new) <= node.volume_limits[driver]

    def spread_counts(self, owner: Pod, spread: Spread, constraints: Sequence[Spread]) -> dict[str, int]:
        """Pods by domain, on nodes that have the keys of all the owner's constraints and that this one looks at."""
        counts: dict[str, int] = {}
        for node in self.problem.nodes:
            admitted = not spread.honor_affinity or admits_by_labels(owner.rules, node)
            tolerated = not spread.honor_taints or not repelled(owner.rules, node)
            if admitted and tolerated and all(each.topology_key in node.labels for each in constraints):
                here = [pod for pod, there in self.all if there is node and _counted(owner, spread, pod)]
                domain = node.labels[spread.topology_key]
                counts[domain] = counts.get(domain, 0) + len(here)
        return counts

    def selects(self, term: PodTerm, owner: Pod, other: Pod) -> bool:
        if term.namespaces or term.namespace_selector is not None:
            labels = self.problem.namespaces.get(other.namespace, {})
            inside = other.namespace in term.namespaces or selected(term.namespace_selector, labels)
        else:
            inside = other.namespace == owner.namespace
        return inside and selected(term.selector, other.labels)

    def lost_affinity(self, before: PlacedPods) -> bool:
        """A pod that has not moved had a required affinity that held, and it holds no longer."""
        lost = before.held_affinity() - self.held_affinity()
        return any(self.where.get(key) == before.where.get(key) for key, _ in lost)

    def held_affinity(self) -> set[tuple[str, int]]:
        """Each required term, by pod and number, for which another pod in the domain matches all terms of the pod."""
        return {
            (owner.key, number)
            for owner, here in self.all
            for number, term in enumerate(owner.rules.pod_affinity)
            for other, there in self.all
            if other is not owner
            and same_domain(term.topology_key, here, there)
            and all(self.selects(each, owner, other) for each in owner.rules.pod_affinity)
        }

    def more_skewed(self, before: PlacedPods) -> bool:
        for owner in self.problem.pods:
            for spread in owner.rules.spread:
                now, then = (
                    max(counts.values(), default=0) - fewest(spread, counts)
                    for counts in (pods.spread_counts(owner, spread, owner.rules.spread) for pods in (self, before))
                )
                if now > max(spread.max_skew, then):
                    return True
        return False

    def soft_share(self, pod: Pod, node: Node) -> float:
        """The share of its soft constraints that the pod would break on the node, itself not counted."""
        parts = list(self.moved(pod, None)._soft_parts(pod, node))
        return sum(weight * share for weight, share in parts) / (sum(weight for weight, _ in parts) or 1)

    def _soft_parts(self, pod: Pod, node: Node) -> Iterator[tuple[int, float]]:
        """By weight: taints, node affinity, pod affinity, topology spread."""
        wanted = pod.rules.preferred
        taints = {each.name: _soft_taints(pod, each) for each in self.problem.nodes}
        if any(taints.values()):
            yield 3, taints[node.name] / max(taints.values())
        if wanted.nodes:
            missed = sum(weight for weight, term in wanted.nodes if not matches(term, node))
            yield 2, missed / sum(weight for weight, _ in wanted.nodes)
        if wanted.with_pods or wanted.apart_from:
            missed = sum(weight for weight, term in wanted.with_pods if not self._any_near(term, pod, node))
            missed += sum(weight for weight, term in wanted.apart_from if self._any_near(term, pod, node))
            yield 2, missed / sum(weight for weight, _ in (*wanted.with_pods, *wanted.apart_from))
        if wanted.spread:
            yield 2, sum(self._fullness(pod, node, spread) for spread in wanted.spread) / len(wanted.spread)

    def _any_near(self, term: PodTerm, pod: Pod, node: Node) -> bool:
        near = [other for other, there in self.all if same_domain(term.topology_key, node, there)]
        return any(self.selects(term, pod, other) for other in near)

    def _fullness(self, pod: Pod, node: Node, spread: Spread) -> float:
        """Of the node's domain: 0 as the emptiest, 1 as the fullest."""
        counts = self.spread_counts(pod, spread, pod.rules.preferred.spread)
        if spread.topology_key not in node.labels:
            return 1.0
        least, most = min(counts.values(), default=0), max(counts.values(), default=0)
        return max(0.0, (counts.get(node.labels[spread.topology_key], 0) - least) / max(1, most - least))


def same_domain(key: str, one: Node, other: Node) -> bool:
    return key in one.labels and one.labels[key] == other.labels.get(key)


def fewest(spread: Spread, counts: Mapping[str, int]) -> int:
    return min(counts.values(), default=0) if len(counts) >= spread.min_domains else 0


def _counted(owner: Pod, spread: Spread, pod: Pod) -> bool:
    """An empty selector counts none."""
    if spread.selector is None or not spread.selector.requirements:
        return False
    return pod.namespace == owner.namespace and not pod.leaving and selected(spread.selector, pod.labels)


def _soft_taints(pod: Pod, node: Node) -> int:
    return sum(taint.effect == "PreferNoSchedule" and repels(taint, pod.rules) for taint in node.taints)
