"""What a request path names: a kind, and perhaps a namespace, an object and a subresource."""

from __future__ import annotations

from dataclasses import dataclass

from loadtests.embedded.api_errors import no_such_path
from loadtests.embedded.resources import NAMESPACES, Resource, at_path


@dataclass(frozen=True, slots=True)
class Target:
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_target(path: str) -> Target:
    """`/api/v1/namespaces/ns/pods/p/eviction` and its like; raises 404 for what is not served."""
    parts = path.strip("/").split("/")
    if "" in parts:
        raise no_such_path()
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not _is_namespace_subresource(group, version, rest):
        namespace, rest = rest[1], rest[2:]
    resource = at_path(group, version, rest[0])
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        raise no_such_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in resource.subresources:
        raise no_such_path()
    if name and resource.namespaced and not namespace:
        raise no_such_path()
    return Target(resource, namespace, name, subresource)


def _is_namespace_subresource(group: str, version: str, rest: list[str]) -> bool:
    return at_path(group, version, rest[0]) == NAMESPACES and len(rest) == 3 and rest[2] in NAMESPACES.subresources
