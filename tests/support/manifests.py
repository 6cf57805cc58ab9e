"""`deploy/rematch.yaml` on a real control plane: the service account and its permissions as users get them."""

from __future__ import annotations

from typing import Any

from loadtests.nodes.in_cluster import COLLECTIONS, NAMESPACE, RIGHTS, manifests
from loadtests.workloads.api import LabApi
from reactor.errors import Conflict

Json = dict[str, Any]


async def apply(api: LabApi, item: Json) -> None:
    """Created, or made equal to what is asked for."""
    place = COLLECTIONS[item["kind"]].format(NAMESPACE)
    try:
        await api.create(place, item)
    except Conflict:
        await api.patch(f"{place}/{item['metadata']['name']}", item)


async def deploy(api: LabApi, settings: str) -> None:
    """Everything but the program itself, with other settings in its ConfigMap."""
    for item in manifests():
        if item["kind"] == "ConfigMap":
            await apply(api, {**item, "data": {"settings.yaml": settings}})
        elif item["kind"] in RIGHTS:
            await apply(api, item)
