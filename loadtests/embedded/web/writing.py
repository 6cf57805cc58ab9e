"""POST, PUT, PATCH and DELETE of objects and collections."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from loadtests.embedded import deletion
from loadtests.embedded.api_errors import ApiError, Details, bad_request, invalid, unsupported_media_type
from loadtests.embedded.deletion import DeleteOptions, parse_options
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import name_of, with_metadata
from loadtests.embedded.patching import JSON_PATCH, MERGE, STRATEGIC, apply_patch
from loadtests.embedded.resources import Json, Resource
from loadtests.embedded.validation import invalid_value
from loadtests.embedded.web.reading import list_options, list_page
from loadtests.embedded.web.requests import RequestTarget, decode, read_bytes, read_json
from loadtests.embedded.web.responses import json_answer, list_body, list_item, raw_answer, success


def is_dry_run(request: web.Request) -> bool:
    asked = request.query.getall("dryRun", [])
    if asked and asked != ["All"]:
        raise bad_request(f'dryRun: Unsupported value: "{asked[0]}": supported values: "All"')
    return bool(asked)


async def answer_create(request: web.Request, api: ObjectApi, target: RequestTarget) -> web.Response:
    dry_run = is_dry_run(request)
    body = await read_json(request)
    created = api.create(target.resource, body, namespace=target.namespace, dry_run=dry_run)
    return json_answer(created, 201)


async def answer_update(request: web.Request, api: ObjectApi, target: RequestTarget) -> web.Response:
    dry_run = is_dry_run(request)
    body = named(await read_json(request), target)
    if target.subresource == "status":
        return json_answer(api.update_status(target.resource, body, dry_run=dry_run))
    missing = api.store.find(target.resource, target.namespace, target.name) is None
    if missing and target.resource.update_may_create:
        return json_answer(api.create(target.resource, body, namespace=target.namespace, dry_run=dry_run), 201)
    return json_answer(api.update(target.resource, body, dry_run=dry_run))


def named(body: Any, target: RequestTarget) -> Json:
    """The body of an update, once it names the object that the URL names."""
    if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {target.resource.kind})")
    metadata = body.get("metadata", {})
    name, namespace = metadata.get("name", ""), metadata.get("namespace", "")
    if not name:
        why = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(why)
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if namespace and namespace != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return with_metadata(body, namespace=target.namespace or None)


async def answer_patch(request: web.Request, api: ObjectApi, target: RequestTarget) -> web.Response:
    dry_run, content_type = is_dry_run(request), request.content_type
    patch = await read_patch(request)
    resource = target.resource
    if resource.custom and content_type == STRATEGIC:
        raise unsupported_media_type(
            f"the body of the request was in an unknown format - accepted media types include: {JSON_PATCH}, {MERGE}"
        )
    current = api.get(resource, target.namespace, target.name)
    patched = named(apply_patch(content_type, current, patch), target)
    _refuse_new_uid(resource, patched, current)
    try:
        if target.subresource == "status":
            return json_answer(api.update_status(resource, patched, dry_run=dry_run))
        return json_answer(api.update(resource, patched, dry_run=dry_run))
    except ApiError as error:
        if error.code == 400:  # the patch is well-formed, what it makes of the object is not
            raise ApiError(422, "Invalid", error.message, Details(name=target.name, kind=resource.kind)) from error
        raise


async def read_patch(request: web.Request) -> Any:
    raw = await read_bytes(request)
    if request.content_type.startswith("application/apply-patch"):
        return {}  # YAML, refused by `apply_patch` with a message that helps
    return decode(raw)


def _refuse_new_uid(resource: Resource, patched: Json, current: Json) -> None:
    uid = patched["metadata"].get("uid")
    if uid != current["metadata"]["uid"]:
        cause = invalid_value("metadata.uid", uid, "field is immutable")
        raise invalid(resource.kind, resource.group, name_of(current), [cause])


async def _delete_options(request: web.Request) -> DeleteOptions:
    raw = await read_bytes(request)
    if raw.strip():
        return parse_options(decode(raw))
    query: Json = {key: value for key, value in request.query.items() if key == "propagationPolicy"}
    grace = request.query.get("gracePeriodSeconds")
    if grace is not None:
        try:
            query["gracePeriodSeconds"] = int(grace)
        except ValueError as error:
            raise bad_request(f'gracePeriodSeconds: parsing "{grace}": invalid syntax') from error
    return parse_options({**query, "dryRun": is_dry_run(request)})


async def answer_delete(request: web.Request, api: ObjectApi, target: RequestTarget) -> web.Response:
    options = await _delete_options(request)
    resource = target.resource
    deleted = deletion.delete(api, resource, target.namespace, target.name, options)
    if resource.returns_deleted_object or not deleted.gone:
        return json_answer(deleted.obj)
    uid = deleted.obj["metadata"]["uid"]
    return success(200, Details(name=target.name, group=resource.group, kind=resource.plural, uid=uid))


async def answer_delete_collection(request: web.Request, api: ObjectApi, target: RequestTarget) -> web.Response:
    options = await _delete_options(request)
    resource = target.resource
    page = list_page(api.store, resource, target.namespace, list_options(request, resource))
    gone = [deletion.delete(api, resource, *stored.key, options).obj for stored in page.items]
    metadata = {"resourceVersion": str(api.store.version)}
    return raw_answer(list_body(resource, metadata, [list_item(obj) for obj in gone]))
