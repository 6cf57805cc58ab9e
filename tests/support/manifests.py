"""`deploy/rematch.yaml` on a real control plane: the service account and its permissions as users get them."""

from __future__ import annotations

import asyncio
from typing import Any

from loadtests.nodes.in_cluster import COLLECTIONS, NAMESPACE, RIGHTS, manifests
from loadtests.workloads.api import LabApi
from reactor.errors import Conflict, NotFound

Json = dict[str, Any]
_STEERING = {"CustomResourceDefinition", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}


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
        elif item["kind"] in RIGHTS | _STEERING:
            await apply(api, item)
    await until_served(api)


async def until_served(api: LabApi) -> None:
    """A CRD is served a moment after it was written."""
    async with asyncio.timeout(20):
        while True:
            try:
                found = await api.get("/apis/rematch.io/v1alpha1")
            except NotFound:
                found = {"resources": []}
            if {"moves", "requests", "placementhints"} <= {each["name"] for each in found["resources"]}:
                return
            await asyncio.sleep(0.05)
