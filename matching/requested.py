"""A plan of somebody else's making: which pod should go to which node. Checked and written like any other plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from matching.plan import Plan
from matching.planners.function import plan_with
from matching.problem import Problem, Scope

PLANNER = "requested"


def requested_plan(problem: Problem, wanted: Mapping[str, str], by: str) -> Plan:
    """`wanted` names nodes by pod (namespace/name). Pods that may not move there stay, with the reason; `by` names the
    author in reasons. Limits on the number of moves are for plans of our own. Raises ProblemError for unknown names."""
    options = replace(
        problem.options,
        scope=Scope.CLUSTER,
        max_moves=None,
        max_moves_per_workload=None,
        max_moves_per_node=None,
        max_moves_per_namespace=None,
    )
    return plan_with(lambda _pods, _nodes: dict(wanted), replace(problem, options=options), PLANNER, by)
