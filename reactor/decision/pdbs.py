"""What the PodDisruptionBudgets allow, read before an eviction is asked for."""

from __future__ import annotations

from matching.selectors import matches
from reactor.cluster.records import Pod, PodDisruptionBudget
from reactor.cluster.view import ClusterView


def pdbs_of(pod: Pod, view: ClusterView) -> list[PodDisruptionBudget]:
    return [
        budget
        for budget in view.pdbs_in(pod.namespace)
        if budget.selector is not None and matches(budget.selector.requirements, pod.labels)
    ]


def why_not_evictable(pod: Pod, view: ClusterView) -> str:
    """What the eviction API would say to this pod; empty when it would accept."""
    budgets = pdbs_of(pod, view)
    if len(budgets) > 1:
        names = ", ".join(sorted(budget.name for budget in budgets))
        return f"several disruption budgets select it ({names}); the eviction API refuses such pods"
    if budgets and budgets[0].disruptions_allowed < 1:
        return f"disruption budget {budgets[0].name} allows no disruption now"
    return ""
