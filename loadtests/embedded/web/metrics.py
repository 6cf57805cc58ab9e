"""metrics.k8s.io over HTTP: made on each request from what the provider says now."""

from __future__ import annotations

import msgspec
from aiohttp import web

from loadtests.embedded.api_errors import not_found
from loadtests.embedded.metrics_api import MetricsProvider, node_metrics, pod_metrics
from loadtests.embedded.resources import NODE_METRICS, Json
from loadtests.embedded.selectors import predicate
from loadtests.embedded.web.answers import json_answer, list_body, raw_answer
from loadtests.embedded.web.target import Target


def answer_metrics(request: web.Request, provider: MetricsProvider, target: Target) -> web.Response:
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


def _measured(provider: MetricsProvider, target: Target) -> list[Json]:
    if target.resource is NODE_METRICS:
        return [node_metrics(usage) for usage in provider.node_usage()]
    pods = (usage for usage in provider.pod_usage() if target.namespace in ("", usage.namespace))
    return [pod_metrics(usage) for usage in pods]
