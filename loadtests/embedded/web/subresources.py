"""binding, eviction and scale: the subresources that are not a part of their object."""

from __future__ import annotations

from aiohttp import web

from loadtests.embedded.api_errors import method_not_allowed
from loadtests.embedded.binding import bind
from loadtests.embedded.eviction import evict
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.patching import apply_patch
from loadtests.embedded.scale import read_scale, write_scale
from loadtests.embedded.web.answers import json_answer, success
from loadtests.embedded.web.body import read_json
from loadtests.embedded.web.target import Target
from loadtests.embedded.web.writing import is_dry_run, read_patch


async def answer_binding(request: web.Request, api: ObjectApi, target: Target) -> web.Response:
    dry_run = is_dry_run(request)
    bind(api, target.namespace, target.name, await read_json(request), dry_run=dry_run)
    return success(201)


async def answer_eviction(request: web.Request, api: ObjectApi, target: Target) -> web.Response:
    dry_run = is_dry_run(request)
    evict(api, target.namespace, target.name, await read_json(request), dry_run=dry_run)
    return success(201)


async def answer_scale(request: web.Request, api: ObjectApi, target: Target) -> web.Response:
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
    return json_answer(write_scale(api, resource, namespace, name, scale, dry_run))
