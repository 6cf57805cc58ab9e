"""The pods of the moved apps, as the API server shows them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from loadtests.nodes.spec import LabError
from loadtests.workloads.api import LabApi, has_condition
from loadtests.zero_loss.design import MovedApp

POLL = 0.2
DEADLINE = 300.0
"""Seconds for a round of moves, or until the apps are complete again: more than one `execution.readyDeadline`."""


@dataclass(frozen=True, slots=True)
class AppPod:
    app: str
    name: str
    uid: str
    node: str
    """Empty while it has none."""
    ready: bool
    ending: bool


@dataclass(frozen=True, slots=True)
class AppPods:
    api: LabApi
    namespace: str
    apps: Sequence[MovedApp]

    async def by_app(self) -> dict[str, list[AppPod]]:
        """Also pods that a release surge has taken the labels off: they are found by their names."""
        items = (await self.api.get(f"/api/v1/namespaces/{self.namespace}/pods"))["items"]
        return {
            moved.app.name: [_pod(moved.app.name, item) for item in items if _belongs(item, moved.app.name)]
            for moved in self.apps
        }

    async def until_complete(self) -> dict[str, list[AppPod]]:
        """As many pods as wanted, all Ready, none on its way out. Returns them."""
        try:
            async with asyncio.timeout(DEADLINE):
                while not self._complete(found := await self.by_app()):
                    await asyncio.sleep(POLL)
        except TimeoutError as error:
            raise LabError(f"the apps did not have all their pods Ready within {DEADLINE:g} s") from error
        return found

    def _complete(self, found: dict[str, list[AppPod]]) -> bool:
        return all(
            len(pods) == moved.app.replicas and all(pod.ready and not pod.ending for pod in pods)
            for moved in self.apps
            for pods in (found[moved.app.name],)
        )


def new_pods(before: Iterable[AppPod], after: Iterable[AppPod]) -> list[AppPod]:
    known = {pod.uid for pod in before}
    return [pod for pod in after if pod.uid not in known]


def _belongs(item: dict[str, Any], app: str) -> bool:
    return str(item["metadata"]["name"]).startswith(f"{app}-")


def _pod(app: str, item: dict[str, Any]) -> AppPod:
    meta = item["metadata"]
    return AppPod(
        app,
        meta["name"],
        meta["uid"],
        item["spec"].get("nodeName", ""),
        ready=has_condition(item, "Ready"),
        ending="deletionTimestamp" in meta,
    )
