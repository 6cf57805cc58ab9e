"""A slow, plain reading of kube-scheduler's filters, and random problems full of rules between pods.

One pod, one node, no arrays, no shared code: what is counted is counted anew for every question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

import pytest

from matching.problem import (
    HostPort,
    Node,
    Options,
    Pod,
    PodTerm,
    Problem,
    Requirement,
    Rules,
    Selector,
    Spread,
    Taint,
    Toleration,
)


def meets(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    there = requirement.key in labels
    if requirement.operator == "In":
        return there and labels[requirement.key] in requirement.values
    if requirement.operator == "NotIn":
        return not there or labels[requirement.key] not in requirement.values
    return there if requirement.operator == "Exists" else not there


def selected(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and all(meets(each, labels) for each in selector.requirements)


@dataclass
class SlowScheduler:
    problem: Problem
    at: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pods = {pod.key: pod for pod in self.problem.pods}
        self.nodes = {node.name: node for node in self.problem.nodes}
        if not self.at:
            self.at = {pod.key: pod.node for pod in self.problem.pods}

    def allows(self, key: str, name: str) -> bool:
        """kube-scheduler's answer once the pod is gone from where it is, and no rule of another gets worse."""
        here = self.at[key]
        if here == name:
            return True
        without = SlowScheduler(self.problem, {**self.at, key: None})
        if not without.passes(self.pods[key], self.nodes[name]):
            return False
        after = SlowScheduler(self.problem, {**self.at, key: name})
        return here is None or not (after.lost_company(self) or after.more_uneven(self))

    def passes(self, pod: Pod, node: Node) -> bool:
        return (
            self._affinity(pod, node)
            and self._anti_affinity(pod, node)
            and self._anti_affinity_of_others(pod, node)
            and self._spread(pod, node)
            and self._ports(pod, node)
        )

    def placed(self) -> list[tuple[Pod, Node]]:
        return [(self.pods[key], self.nodes[name]) for key, name in self.at.items() if name in self.nodes]

    def about(self, term: PodTerm, owner: Pod, other: Pod) -> bool:
        if term.namespaces or term.namespace_selector is not None:
            known = self.problem.namespaces.get(other.namespace, {})
            inside = other.namespace in term.namespaces or selected(term.namespace_selector, known)
        else:
            inside = other.namespace == owner.namespace
        return inside and selected(term.selector, other.labels)

    def _affinity(self, pod: Pod, node: Node) -> bool:
        terms = pod.rules.pod_affinity
        if any(term.topology_key not in node.labels for term in terms):
            return False
        matching = [there for other, there in self.placed() if all(self.about(term, pod, other) for term in terms)]
        pairs = {
            (t.topology_key, n.labels[t.topology_key]) for n in matching for t in terms if t.topology_key in n.labels
        }
        if all((term.topology_key, node.labels[term.topology_key]) in pairs for term in terms):
            return True
        return not pairs and all(self.about(term, pod, pod) for term in terms)

    def _anti_affinity(self, pod: Pod, node: Node) -> bool:
        return not any(
            same_place(term.topology_key, node, there) and self.about(term, pod, other)
            for term in pod.rules.pod_anti_affinity
            for other, there in self.placed()
        )

    def _anti_affinity_of_others(self, pod: Pod, node: Node) -> bool:
        return not any(
            same_place(term.topology_key, node, there) and self.about(term, other, pod)
            for other, there in self.placed()
            for term in other.rules.pod_anti_affinity
        )

    def _spread(self, pod: Pod, node: Node) -> bool:
        for spread in pod.rules.spread:
            if spread.topology_key not in node.labels:
                return False
            counts = self.counts(pod, spread)
            here = counts.get(node.labels[spread.topology_key], 0)
            itself = int(selected(spread.selector, pod.labels))
            if here + itself - fewest(spread, counts) > spread.max_skew:
                return False
        return True

    def counts(self, owner: Pod, spread: Spread) -> dict[str, int]:
        """Per domain that has a node which the constraint looks at."""
        looked_at = [node for node in self.nodes.values() if self._looked_at(owner, spread, node)]
        found = {node.labels[spread.topology_key]: 0 for node in looked_at}
        names = {node.name for node in looked_at}
        empty = spread.selector is not None and not spread.selector.requirements
        for pod, node in self.placed():
            same = pod.namespace == owner.namespace and not pod.leaving and not empty
            if node.name in names and same and selected(spread.selector, pod.labels):
                found[node.labels[spread.topology_key]] += 1
        return found

    def _looked_at(self, owner: Pod, spread: Spread, node: Node) -> bool:
        if any(each.topology_key not in node.labels for each in owner.rules.spread):
            return False
        selector = owner.rules.node_selector
        if spread.honor_affinity and any(node.labels.get(key) != value for key, value in selector):
            return False
        tolerated = {each.key for each in owner.rules.tolerations}
        return not (
            spread.honor_taints and any(t.effect == "NoSchedule" and t.key not in tolerated for t in node.taints)
        )

    def _ports(self, pod: Pod, node: Node) -> bool:
        taken = [port for other, there in self.placed() if there is node for port in other.rules.ports]
        return not any(
            (port.port, port.protocol) == (other.port, other.protocol)
            and (port.ip == other.ip or "0.0.0.0" in (port.ip, other.ip))
            for port in pod.rules.ports
            for other in taken
        )

    def company(self) -> set[tuple[str, int]]:
        """Each required affinity term that holds: another pod that matches all terms is in the place."""
        found = set()
        for owner, here in self.placed():
            terms = owner.rules.pod_affinity
            for number, term in enumerate(terms):
                if any(
                    other is not owner
                    and same_place(term.topology_key, here, there)
                    and all(self.about(each, owner, other) for each in terms)
                    for other, there in self.placed()
                ):
                    found.add((owner.key, number))
        return found

    def lost_company(self, before: SlowScheduler) -> bool:
        stayed = {key for key, name in self.at.items() if name is not None and before.at[key] == name}
        return any(key in stayed for key, _ in before.company() - self.company())

    def more_uneven(self, before: SlowScheduler) -> bool:
        for owner in self.pods.values():
            for spread in owner.rules.spread:
                now, then = (skew(spread, state.counts(owner, spread)) for state in (self, before))
                if now > max(spread.max_skew, then):
                    return True
        return False


def same_place(key: str, one: Node, other: Node) -> bool:
    return key in one.labels and one.labels[key] == other.labels.get(key)


def fewest(spread: Spread, counts: dict[str, int]) -> int:
    return 0 if len(counts) < spread.min_domains else min(counts.values(), default=0)


def skew(spread: Spread, counts: dict[str, int]) -> int:
    return max(counts.values(), default=0) - fewest(spread, counts)


ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_NAMESPACES = {"shop": {"team": "a"}, "bank": {"team": "b"}}


def _app(*names: str) -> Selector:
    return Selector((Requirement("app", "In", names),))


_SELECTORS = (
    _app("web"),
    _app("db"),
    _app("web", "db"),
    Selector((Requirement("app", "NotIn", ("db",)),)),
    Selector((Requirement("tier", "Exists"),)),
    Selector((Requirement("app", "Exists"), Requirement("tier", "DoesNotExist"))),
    Selector(),
    None,
)


def _term(pick: Random) -> PodTerm:
    namespaces, selector = pick.choice(
        [
            ((), None),
            ((), None),
            (("shop",), None),
            ((), Selector()),
            (("bank",), Selector((Requirement("team", "In", ("a",)),))),
        ]
    )
    return PodTerm(pick.choice([ZONE, HOST]), pick.choice(_SELECTORS), namespaces, selector)


def _spread(pick: Random) -> Spread:
    return Spread(
        pick.choice([ZONE, ZONE, HOST]),
        pick.choice(_SELECTORS),
        max_skew=pick.choice([1, 1, 2]),
        min_domains=pick.choice([1, 1, 3]),
        honor_affinity=pick.random() < 0.7,
        honor_taints=pick.random() < 0.3,
    )


def _rules(pick: Random) -> Rules:
    def some(make: Callable[[Random], object], chance: float) -> tuple[object, ...]:
        return tuple(make(pick) for _ in range(pick.choice([1, 1, 2]))) if pick.random() < chance else ()

    return Rules(
        tolerations=pick.choice([(), (Toleration("k", "Exists"),)]),
        node_selector=pick.choice([(), (), (("disk", "ssd"),)]),
        pod_affinity=some(_term, 0.3),  # type: ignore[arg-type]
        pod_anti_affinity=some(_term, 0.3),  # type: ignore[arg-type]
        spread=some(_spread, 0.3),  # type: ignore[arg-type]
        ports=pick.choice(
            [(), (), (HostPort(80),), (HostPort(80, ip="10.0.0.1"),), (HostPort(80, "UDP"), HostPort(81))]
        ),
    )


def _crowd(seed: int, pods: int = 7, nodes: int = 4) -> Problem:
    """Room enough for everybody, so that only the rules between them matter."""
    pick = Random(seed)
    names = [f"n{number}" for number in range(nodes)]
    labels = [{"app": "web"}, {"app": "web", "tier": "front"}, {"app": "db"}, {}]
    templates = [_rules(pick) for _ in range(3)] + [Rules()]
    return Problem(
        ("cpu",),
        tuple(
            Pod(
                key=f"{pick.choice(['shop', 'shop', 'bank'])}/p{number}",
                uid=f"u{number}",
                usage=(pick.randint(0, 3),),
                request=(0,),
                peak=(0,),
                node=pick.choice([None, *names, *names]),
                happy=pick.random() < 0.7,
                fixed=pick.choice(["", "", "", "DaemonSet"]),
                rules=pick.choice(templates),
                labels=pick.choice(labels),
                leaving=pick.random() < 0.1,
            )
            for number in range(pods)
        ),
        tuple(
            Node(
                name,
                (pick.randint(5, 10),),
                labels={
                    HOST: name,
                    **pick.choice([{ZONE: "a"}, {ZONE: "b"}, {ZONE: "c"}, {}]),
                    **pick.choice([{"disk": "ssd"}, {}]),
                },
                taints=pick.choice([(), (), (Taint("k", "PreferNoSchedule"),), (Taint("k", "NoSchedule"),)]),
            )
            for name in names
        ),
        Options(inertia=pick.choice([0.0, 0.2]), only_if_better=False),
        namespaces=_NAMESPACES,
    )


@pytest.fixture(scope="session")
def crowd() -> Callable[..., Problem]:
    return _crowd


@pytest.fixture(scope="session")
def slow_scheduler() -> Callable[..., SlowScheduler]:
    return SlowScheduler
