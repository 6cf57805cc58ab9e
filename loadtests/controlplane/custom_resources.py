"""Our custom resources on a real API server, from the chart."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import yaml

from loadtests.workloads.api import LabApi, has_condition
from reactor.cluster.connection import DEFAULT_NAMESPACE
from reactor.errors import Conflict, NotFound

CRDS = Path(__file__).parents[2] / "deploy" / "chart" / "files" / "crds"
_COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SECONDS = 30.0


async def prepare_journal(api: LabApi) -> None:
    """For a controller that runs beside the cluster: the definitions, and the namespace of its journal."""
    await install_crds(api)
    with suppress(Conflict):
        await api.create("/api/v1/namespaces", {"metadata": {"name": DEFAULT_NAMESPACE}})


async def forget_journal(api: LabApi) -> None:
    """Of an earlier controller: its cooldowns and moves would be restored."""
    for item in (
        f"/api/v1/namespaces/{DEFAULT_NAMESPACE}/configmaps/rematch-state",
        f"/apis/coordination.k8s.io/v1/namespaces/{DEFAULT_NAMESPACE}/leases/rematch",
        f"/apis/rematch.io/v1alpha1/namespaces/{DEFAULT_NAMESPACE}/moves",
        f"/apis/rematch.io/v1alpha1/namespaces/{DEFAULT_NAMESPACE}/requests",
    ):
        with suppress(NotFound):
            await api.delete(item, {})


async def install_crds(api: LabApi) -> None:
    """Every definition that is not there yet; returns when all are served."""
    definitions = [
        document for file in sorted(CRDS.glob("*.yaml")) for document in yaml.safe_load_all(file.read_text())
    ]
    for definition in definitions:
        with suppress(Conflict):
            await api.create(_COLLECTION, definition)
    async with asyncio.timeout(_SECONDS):
        for definition in definitions:
            path = f"{_COLLECTION}/{definition['metadata']['name']}"
            while not has_condition(await api.get(path), "Established"):
                await asyncio.sleep(0.05)
