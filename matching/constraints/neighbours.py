"""Rules between pods made ready: kinds of pods, the tallies that count them, and each kind's checks.

Built once for a problem and shared by everybody who tries placements (`between_pods.BetweenPods` holds the state).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matching.constraints import pod_rules
from matching.constraints.compiling import Compiled, Compiler
from matching.constraints.pod_kinds import PodKinds, pod_kinds
from matching.constraints.tallies import Tally
from matching.constraints.who import Namespaces, label_keys
from matching.problem import Node, Pod, Rules, Selector
from matching.shapes import Mask


class Neighbours:
    """`has_rules` and `concerned` are by pod: its own rules look at others; a rule of somebody looks at it. A pod
    that is neither goes wherever it fits by itself, and its coming and going matters to no rule."""

    def __init__(self, pods: Sequence[Pod], kinds: PodKinds, compiled: Compiled) -> None:
        self.pods = pods
        self.kind_of_pod = kinds.of_pod
        self.tallies = compiled.tallies
        self.checks, self.duties = compiled.checks, compiled.duties
        """By kind."""
        self.tallies_of_kind = _by_kind(compiled.tallies, len(kinds.kinds))
        own = np.array([has_rules(kind.rules) for kind in kinds.kinds], dtype=bool)
        counted = np.array([bool(each) for each in self.tallies_of_kind], dtype=bool)
        asked = np.array([bool(each) for each in compiled.checks], dtype=bool)
        self.has_rules: Mask = own[kinds.of_pod]
        self.concerned: Mask = ((counted | asked) & ~own)[kinds.of_pod]

        self.involved: Mask = self.has_rules | self.concerned

    def matters_to(self, pod: int) -> bool:
        return bool(self.involved[pod])


def neighbours(pods: Sequence[Pod], nodes: Sequence[Node], namespaces: Namespaces) -> Neighbours | None:
    """None when no pod has a rule that looks at other pods."""
    examples = {id(pod.rules): pod for pod in pods}
    ruling = [pod.rules for pod in examples.values() if has_rules(pod.rules)]
    if not ruling:
        return None
    for pod in examples.values():
        pod_rules.check(f"pod {pod.key}", pod.rules)
    keys = label_keys(selector for rules in ruling for selector in pod_selectors(rules))
    kinds = pod_kinds(pods, has_rules, sorted(keys))
    return Neighbours(pods, kinds, Compiler(kinds.kinds, nodes, namespaces).compiled())


def has_rules(rules: Rules) -> bool:
    """Whether these rules look at other pods."""
    return bool(rules.pod_affinity or rules.pod_anti_affinity or rules.spread or rules.ports)


def pod_selectors(rules: Rules) -> list[Selector | None]:
    """Of the pods that these rules look at."""
    terms = (*rules.pod_affinity, *rules.pod_anti_affinity)
    return [*(term.selector for term in terms), *(spread.selector for spread in rules.spread)]


def _by_kind(tallies: Sequence[Tally], kinds: int) -> tuple[tuple[Tally, ...], ...]:
    counted: list[list[Tally]] = [[] for _ in range(kinds)]
    for tally in tallies:
        for kind in np.flatnonzero(tally.members).tolist():
            counted[kind].append(tally)
    return tuple(map(tuple, counted))
