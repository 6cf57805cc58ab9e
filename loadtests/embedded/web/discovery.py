"""Discovery, health and version endpoints."""

from __future__ import annotations

from collections.abc import Mapping

from loadtests.embedded.resources import SERVED, Json, Resource
from loadtests.embedded.web.subresources import REVIEW_GROUP, REVIEW_RESOURCE

GIT_VERSION = "v1.36.0+rematch-embedded"
HEALTH_PATHS = ("/healthz", "/livez", "/readyz")


def version_info() -> Json:
    return {
        "major": "1",
        "minor": "36",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "",
        "platform": "python/asyncio",
    }


def _groups() -> dict[str, str]:
    """Every group with its version, the core group apart."""
    groups = {resource.group: resource.version for resource in SERVED if resource.group}
    return {**groups, REVIEW_GROUP: "v1"}


def _group(name: str, version: str) -> Json:
    entry = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [entry], "preferredVersion": entry}


def _resource_list(group: str, version: str) -> Json:
    served = [resource for resource in SERVED if (resource.group, resource.version) == (group, version)]
    entries = [entry for resource in served for entry in _entries(resource)]
    if group == REVIEW_GROUP:
        entries.append(REVIEW_RESOURCE)
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}


def _entries(resource: Resource) -> list[Json]:
    main: Json = {
        "name": resource.plural,
        "singularName": resource.kind.lower() if resource.version != "v1beta1" else "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        main["shortNames"] = list(resource.short_names)
    if resource.categories:
        main["categories"] = list(resource.categories)
    return [main, *(_subresource(resource, name) for name in resource.subresources)]


def _subresource(resource: Resource, name: str) -> Json:
    kinds: Mapping[str, Json] = {
        "binding": {"kind": "Binding", "verbs": ["create"]},
        "eviction": {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]},
        "scale": {"group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"]},
        "status": {"kind": resource.kind, "verbs": ["get", "patch", "update"]},
    }
    head = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
    return {**head, **kinds[name]}


def documents() -> Mapping[str, Json]:
    """Every discovery document by its path; they never change while the server runs."""
    groups = _groups()
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]
    found: dict[str, Json] = {
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses},
        "/apis": {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(name, version) for name, version in groups.items()],
        },
        "/api/v1": _resource_list("", "v1"),
        "/version": version_info(),
    }
    for name, version in groups.items():
        found[f"/apis/{name}"] = {"kind": "APIGroup", "apiVersion": "v1", **_group(name, version)}
        found[f"/apis/{name}/{version}"] = _resource_list(name, version)
    return found
