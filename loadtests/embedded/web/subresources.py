"""Handlers beside plain reads and writes: binding, eviction, scale, access reviews and metrics.k8s.io."""

from __future__ import annotations

import msgspec
from aiohttp import web

from loadtests.embedded.api_errors import method_not_allowed, not_found
from loadtests.embedded.binding import bind
from loadtests.embedded.eviction import evict
from loadtests.embedded.metrics_api import MetricsProvider, node_metrics, pod_metrics
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.patching import apply_patch
from loadtests.embedded.resources import NODE_METRICS, Json
from loadtests.embedded.scale import read_scale, write_scale
from loadtests.embedded.selectors import predicate
from loadtests.embedded.web.requests import RequestTarget, read_json
from loadtests.embedded.web.responses import json_answer, list_body, raw_answer, success
from loadtests.embedded.web.writing import is_dry_run, read_patch

REVIEW_GROUP = "authorization.k8s.io"
REVIEW_PATH = f"/apis/{REVIEW_GROUP}/v1/selfsubjectaccessreviews"


async def answer_binding(request: web.Request, api: ObjectApi, target: RequestTarget) -> web.Response:
    dry_run = is_dry_run(request)
    bind(api, target.namespace, target.name, await read_json(request), dry_run=dry_run)
    return success(201)


async def answer_eviction(request: web.Request, api: ObjectApi, target: RequestTarget) -> web.Response:
    dry_run = is_dry_run(request)
    evict(api, target.namespace, target.name, await read_json(request), dry_run=dry_run)
    return success(201)


async def answer_scale(request: web.Request, api: ObjectApi, target: RequestTarget) -> web.Response:
    resource, namespace, name = target.resource, target.namespace, target.name
    if request.method == "GET":
        return json_answer(read_scale(api.get(resource, namespace, name)))
    dry_run = is_dry_run(request)
    if request.method == "PUT":
        scale = await read_json(request)
    elif request.method == "PATCH":
        patch = await read_patch(request)
        current = read_scale(api.get(resource, namespace, name))
        scale = apply_patch(request.content_type, current, patch)
    else:
        raise method_not_allowed()
    manager = request.query.get("fieldManager")
    return json_answer(write_scale(api, resource, namespace, name, scale, dry_run=dry_run, manager=manager))


REVIEW_RESOURCE: Json = {
    "name": "selfsubjectaccessreviews",
    "singularName": "selfsubjectaccessreview",
    "namespaced": False,
    "kind": "SelfSubjectAccessReview",
    "verbs": ["create"],
}


async def answer_review(request: web.Request) -> web.Response:
    """The answer does not depend on the question, so kubectl may ask in protobuf, too."""
    asked = await read_json(request) if request.content_type == "application/json" else {}
    spec = asked.get("spec") if isinstance(asked, dict) else None
    answer = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": f"{REVIEW_GROUP}/v1",
        "metadata": {},
        "spec": spec or {},
        "status": {"allowed": True, "reason": "the embedded server has one user"},
    }
    return json_answer(answer, 201)


def answer_metrics(request: web.Request, provider: MetricsProvider, target: RequestTarget) -> web.Response:
    objects = _measured(provider, target)
    if target.name:
        found = next((obj for obj in objects if obj["metadata"]["name"] == target.name), None)
        if found is None:
            raise not_found(target.resource, target.name)
        return json_answer(found)
    query = request.query
    test = predicate(target.resource, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    items = [msgspec.json.encode(obj) for obj in objects if test is None or test(obj)]
    return raw_answer(list_body(target.resource, {}, items))


def _measured(provider: MetricsProvider, target: RequestTarget) -> list[Json]:
    if target.resource is NODE_METRICS:
        return [node_metrics(usage) for usage in provider.node_usage()]
    pods = (usage for usage in provider.pod_usage() if target.namespace in ("", usage.namespace))
    return [pod_metrics(usage) for usage in pods]
