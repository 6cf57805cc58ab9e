"""What an aggregated API server has to know of the cluster: whose requests to trust, and who owns an API group."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from reactor.cluster.api import ApiRequest, Connection, checked, decoded
from reactor.errors import NotFound

_DEADLINE = 10.0
_AUTHENTICATION = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class FrontProxy(Struct, frozen=True):
    """Requests with a client certificate of this authority come from the API server, which has checked the user."""

    authority: str
    """PEM."""
    names: tuple[str, ...]
    """Common names that such a certificate may have; any if there are none."""


class ServiceName(Struct, frozen=True):
    namespace: str = ""
    name: str = ""


class _Spec(Struct, frozen=True):
    service: ServiceName | None = None


class _ApiService(Struct, frozen=True):
    spec: _Spec = _Spec()


class _Authentication(Struct, frozen=True):
    data: dict[str, str] = {}


_CONFIG_MAP = msgspec.json.Decoder(_Authentication)
_API_SERVICE = msgspec.json.Decoder(_ApiService)


async def front_proxy(connection: Connection) -> FrontProxy | None:
    """None in a cluster without aggregation. Raises a ClusterError."""
    body = await _get(connection, _AUTHENTICATION)
    data = decoded(_CONFIG_MAP, body, _AUTHENTICATION).data
    authority = data.get("requestheader-client-ca-file", "")
    names = msgspec.json.decode(data.get("requestheader-allowed-names") or "[]", type=tuple[str, ...])
    return FrontProxy(authority, names) if authority else None


async def owner_of_group(connection: Connection, group_version: str) -> ServiceName | None:
    """The Service behind the APIService, with an empty name where the API server itself answers; None where there is no
    APIService. Raises a ClusterError."""
    path = f"{_API_SERVICES}/{group_version}"
    try:
        body = await _get(connection, path)
    except NotFound:
        return None
    return decoded(_API_SERVICE, body, path).spec.service or ServiceName()


async def _get(connection: Connection, path: str) -> bytes:
    response = await connection.send(ApiRequest("GET", path, deadline=_DEADLINE))
    return checked(response, f"GET {path}")
