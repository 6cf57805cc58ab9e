"""pods/eviction: a delete that PodDisruptionBudgets may refuse."""

from __future__ import annotations

from typing import Any

from loadtests.embedded.api_errors import ApiError, StatusCause, bad_request, forbidden, too_many_requests
from loadtests.embedded.deletion import DeleteOptions, check_preconditions, delete, parse_options
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import (
    changed,
    condition_of,
    is_deleting,
    is_ready,
    labels_of,
    name_of,
    namespace_of,
    status_of,
    timestamp,
    with_condition,
)
from loadtests.embedded.resources import PODDISRUPTIONBUDGETS, PODS, Json
from loadtests.embedded.selectors import selector_of

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def evict(api: ObjectApi, namespace: str, name: str, eviction: Any, *, dry_run: bool = False) -> None:
    """`eviction` is a policy/v1 Eviction. A budget is asked and spent before preconditions, as the real server does."""
    options = _checked(name, eviction)
    pod = api.get(PODS, namespace, name)
    budget = None if _needs_no_budget(pod) else _budget_of(api, pod)
    spends = budget is not None and not _may_go_unhealthy(pod, budget)
    if budget is not None and spends:
        _refuse_exhausted(budget)
        if not (dry_run or options.dry_run):
            _spend(api, budget, name)
    check_preconditions("Pod", "", pod, options)
    if dry_run or options.dry_run:
        return
    _mark_target(api, pod)
    delete(api, PODS, namespace, name, DeleteOptions(options.grace_seconds, propagation=options.propagation))


def _checked(name: str, eviction: Any) -> DeleteOptions:
    if not isinstance(eviction, dict) or eviction.get("kind", "Eviction") != "Eviction":
        raise bad_request("not a Eviction object")
    version = eviction.get("apiVersion", "policy/v1")
    if version not in ("policy/v1", "policy/v1beta1"):
        raise bad_request(f"the API version in the data ({version}) does not match the expected API version (v1)")
    metadata = eviction.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    return parse_options(eviction.get("deleteOptions") or {})


def _needs_no_budget(pod: Json) -> bool:
    return is_deleting(pod) or status_of(pod).get("phase") in ("Succeeded", "Failed", "Pending")


def _budget_of(api: ObjectApi, pod: Json) -> Json | None:
    budgets = [
        stored.obj
        for stored in api.store.all(PODDISRUPTIONBUDGETS, namespace_of(pod))
        if selector_of(stored.obj["spec"].get("selector"))(labels_of(pod))
    ]
    if len(budgets) > 1:
        raise ApiError(500, "", _SEVERAL)
    return budgets[0] if budgets else None


def _may_go_unhealthy(pod: Json, budget: Json) -> bool:
    """A pod that is not Ready is no part of what the budget protects, when the budget says so or is met without it."""
    if is_ready(pod):
        return False
    status = status_of(budget)
    met: bool = status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0
    return met or budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"


def _refuse_exhausted(budget: Json) -> None:
    name, status = name_of(budget), status_of(budget)
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        message = f"The disruption budget {name} is still being processed by the server."
        raise too_many_requests(_REFUSED, StatusCause("DisruptionBudget", message), retry_after=10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden(PODDISRUPTIONBUDGETS, name, "pdb disruptions allowed is negative")
    if allowed == 0:
        raise too_many_requests(_REFUSED, StatusCause("DisruptionBudget", _why_none(budget)), retry_after=0)


def _why_none(budget: Json) -> str:
    name, status = name_of(budget), status_of(budget)
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    condition = condition_of(budget, "DisruptionAllowed")
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    general = f"The disruption budget {name} does not allow evicting pods currently"
    if condition is not None and condition["status"] == "False" and condition.get("message"):
        return f"{general} ({condition['reason']}): {condition['message']}"
    return general


def _spend(api: ObjectApi, budget: Json, pod_name: str) -> None:
    """Until the disruption controller has looked again, this pod counts as gone."""
    status = status_of(budget)
    disrupted = {**(status.get("disruptedPods") or {}), pod_name: timestamp(api.clock.now())}
    spent = {**status, "disruptionsAllowed": status["disruptionsAllowed"] - 1, "disruptedPods": disrupted}
    api.update_status(PODDISRUPTIONBUDGETS, changed(budget, status=spent))


def _mark_target(api: ObjectApi, pod: Json) -> None:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": timestamp(api.clock.now()),
    }
    api.store.replace(PODS, changed(pod, status=with_condition(status_of(pod), condition)))
