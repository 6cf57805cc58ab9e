"""Which pods matter to rules between pods at all; mostly few do."""

from __future__ import annotations

from collections.abc import Iterable

from matching.feasibility import has_inter_pod_rules, pod_selectors
from matching.problem import Rules
from matching.selectors import selects
from reactor.cluster.records import Pod

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""A label that every namespace has, so it is known even of one that was not read."""


def seen_by_rules(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Those whose rules look at other pods, and those whom such rules may mean."""
    every = list(pods)
    distinct = {id(pod.rules): pod.rules for pod in every}
    ruling = {key: rules for key, rules in distinct.items() if has_inter_pod_rules(rules)}
    if not ruling:
        return ()
    selectors = {selector for rules in ruling.values() for selector in pod_selectors(rules)}
    meant: dict[int, bool] = {}
    for pod in every:
        if id(pod.labels) not in meant:
            meant[id(pod.labels)] = any(selects(selector, pod.labels) for selector in selectors)
    return tuple(pod for pod in every if meant[id(pod.labels)] or id(pod.rules) in ruling)


def asks_for_namespace_labels(rules: Rules) -> bool:
    """Beyond the label with the name, which every namespace has."""
    selectors = (term.namespace_selector for term in (*rules.pod_affinity, *rules.pod_anti_affinity))
    return any(
        requirement.key != NAMESPACE_NAME
        for selector in selectors
        if selector is not None
        for requirement in selector.requirements
    )
