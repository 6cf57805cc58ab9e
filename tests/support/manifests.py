"""`deploy/rematch.yaml` on a real control plane: the service account and its permissions as users get them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from loadtests.workloads.api import LabApi
from reactor.errors import Conflict

MANIFESTS = Path(__file__).parents[2] / "deploy" / "rematch.yaml"
NAMESPACE = "rematch"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_PLACES = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "Role": f"{_RBAC}/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"{_RBAC}/namespaces/{NAMESPACE}/rolebindings",
    "ConfigMap": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
}
Json = dict[str, Any]


def objects() -> list[Json]:
    return [item for item in yaml.safe_load_all(MANIFESTS.read_text()) if item]


async def apply(api: LabApi, item: Json) -> None:
    """Created, or made equal to what is asked for."""
    place = _PLACES[item["kind"]]
    try:
        await api.create(place, item)
    except Conflict:
        await api.patch(f"{place}/{item['metadata']['name']}", item)


async def deploy(api: LabApi, settings: str) -> None:
    """Everything but the program itself, with other settings in its ConfigMap."""
    for item in objects():
        if item["kind"] == "ConfigMap":
            await apply(api, {**item, "data": {"settings.yaml": settings}})
        elif item["kind"] in _PLACES:
            await apply(api, item)
