"""Moves that somebody asks for: their pods are found, and they are checked and written as a plan like ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from matching.plan import Plan
from matching.problem import Problem, Scope
from matching.requested import requested_plan
from reactor.cluster.pod_names import near_names
from reactor.cluster.records import Pod
from reactor.cluster.requests import RequestedMove
from reactor.cluster.view import ClusterView
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.decide import Trigger, decide
from reactor.decision.eligibility import Eligibility
from reactor.errors import InputError
from reactor.planning.problems import rematch_problem
from reactor.settings.model import Settings
from reactor.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RequestedPlan:
    problem: Problem
    plan: Plan
    pods: Mapping[str, Pod]
    """By the name that the author wrote."""

    def refusals(self, moves: Iterable[RequestedMove]) -> dict[str, str]:
        """Why pods are not moved as wanted, by the name that the author wrote."""
        moved = {move.uid for move in self.plan.moves}
        reasons = self.plan.why_stays({pod.uid for pod in self.pods.values()})
        left = {each.uid: each.reason for each in self.plan.unplaced}
        return {
            move.pod: reasons.get(pod.uid) or left.get(pod.uid) or "it may not move"
            for move in moves
            if (pod := self.pods[move.pod]).uid not in moved and pod.node != move.to
        }


def plan_requested(
    moves: Iterable[RequestedMove], snapshot: Snapshot, cooldowns: Cooldowns, settings: Settings, by: str
) -> RequestedPlan:
    """`by` names the author in reasons. Whatever the scope of our own plans, every pod may be asked for. Raises
    InputError for unknown pods and nodes."""
    pods: dict[str, Pod] = {}
    wanted: dict[str, str] = {}
    for move in moves:
        pod = find_pod(move.pod, snapshot.cluster)
        if move.uid and move.uid != pod.uid:
            raise InputError(f"{pod.key} is another pod now than when this was planned")
        if move.to not in snapshot.cluster.nodes:
            raise InputError(f"{pod.key}: there is no node {move.to}")
        if wanted.setdefault(pod.key, move.to) != move.to:
            raise InputError(f"{pod.key} is wanted on {wanted[pod.key]} and on {move.to}")
        pods[move.pod] = pod
    if not wanted:
        raise InputError("names no pod")
    whole = settings.model_copy(update={"planner": settings.planner.model_copy(update={"scope": Scope.CLUSTER})})
    eligibility = Eligibility(snapshot, cooldowns.without_opinions(), whole)
    problem = rematch_problem(eligibility, decide(eligibility, Trigger.DEMAND))
    return RequestedPlan(problem, requested_plan(problem, wanted, by), pods)


def find_pod(name: str, cluster: ClusterView, namespace: str = "") -> Pod:
    """By namespace/name, or by a name that only one pod has (in `namespace`, if one is given)."""
    wanted, slash, short = name.partition("/")
    if not slash:
        wanted, short = namespace, name
    if wanted:
        found = [pod for pod in [cluster.pod_named(wanted, short)] if pod is not None]
    else:
        found = [pod for pod in cluster.pods.values() if pod.name == short]
    if not found:
        near = near_names(short, cluster, wanted, "Pod")
        meant = f"; did you mean {', '.join(near)}?" if near else ""
        where = f" in namespace {wanted}" if wanted and not slash else ""
        raise InputError(f"there is no pod {name}{where}{meant}")
    if len(found) > 1:
        keys = ", ".join(sorted(pod.key for pod in found))
        raise InputError(f"{name} is the name of several pods: {keys}; write namespace/name")
    return found[0]
