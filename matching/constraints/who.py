"""Whom a rule between pods is about: pods by their labels and namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from matching.constraints.node_affinity import holds
from matching.problem import PodTerm, Requirement, Selector

Namespaces = Mapping[str, Mapping[str, str]]
"""Labels of each namespace."""

_NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Who:
    """A selection of pods that no longer depends on whose rule it is."""

    selector: Selector | None
    namespaces: tuple[str, ...]
    namespace_selector: Selector | None = None

    def includes(self, namespace: str, labels: Mapping[str, str], known: Namespaces) -> bool:
        if namespace not in self.namespaces and (
            self.namespace_selector is None or not selects(self.namespace_selector, known.get(namespace, _NO_LABELS))
        ):
            return False
        return selects(self.selector, labels)

    def __str__(self) -> str:
        return text(self.selector)


def whom(term: PodTerm, own_namespace: str) -> Who:
    if not term.namespaces and term.namespace_selector is None:
        return Who(term.selector, (own_namespace,))
    return Who(term.selector, tuple(sorted(set(term.namespaces))), term.namespace_selector)


def selects(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and all(holds(requirement, labels) for requirement in selector.requirements)


def label_keys(selectors: Iterable[Selector | None]) -> set[str]:
    return {each.key for selector in selectors if selector is not None for each in selector.requirements}


def text(selector: Selector | None) -> str:
    """As kubectl writes selectors: `app=web,tier in (a,b)`."""
    if selector is None:
        return "no pods"
    return ",".join(map(_requirement, selector.requirements)) or "all pods"


def _requirement(requirement: Requirement) -> str:
    values = ",".join(requirement.values)
    match requirement.operator:
        case "In":
            several = len(requirement.values) > 1
            return f"{requirement.key} in ({values})" if several else f"{requirement.key}={values}"
        case "NotIn":
            return f"{requirement.key} notin ({values})"
        case "DoesNotExist":
            return f"!{requirement.key}"
        case _:
            return requirement.key
