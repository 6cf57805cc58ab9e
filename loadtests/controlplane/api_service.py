"""An API group that a server on loopback serves, behind an APIService of a real control plane.

The API server reaches it by a Service of type ExternalName: Endpoints refuse loopback addresses.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from loadtests.controlplane.plane import ControlPlane
from loadtests.workloads.api import LabApi
from reactor.errors import ClusterError, Conflict

_API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


@dataclass(frozen=True, slots=True)
class ApiService:
    group: str
    version: str
    host: str
    """SERVICE.NAMESPACE.svc, for which the server has a certificate."""
    port: int


@asynccontextmanager
async def registered(plane: ControlPlane, api: LabApi, service: ApiService) -> AsyncIterator[None]:
    name, namespace = service.host.split(".")[:2]
    external = {"type": "ExternalName", "externalName": "localhost"}
    await _create(api, "/api/v1/namespaces", {"metadata": {"name": namespace}})
    services = f"/api/v1/namespaces/{namespace}/services"
    await _create(api, services, {"metadata": {"name": name}, "spec": external})
    await _create(api, _API_SERVICES, _document(plane, service, name, namespace))
    try:
        yield
    finally:
        with suppress(ClusterError):  # the API server may be gone by now
            await api.delete(f"{_API_SERVICES}/{service.version}.{service.group}", {})


def _document(plane: ControlPlane, service: ApiService, name: str, namespace: str) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{service.version}.{service.group}"},
        "spec": {
            "group": service.group,
            "version": service.version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": base64.b64encode(plane.ca.read_bytes()).decode(),
            "service": {"namespace": namespace, "name": name, "port": service.port},
        },
    }


async def _create(api: LabApi, path: str, body: dict[str, Any]) -> None:
    with suppress(Conflict):
        await api.create(path, body)
