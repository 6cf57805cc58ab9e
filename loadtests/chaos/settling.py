"""After the faults: everything is as its owners want it, and nothing of ours is left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from loadtests.chaos.injection import MOVES
from loadtests.chaos.invariants import Violation
from loadtests.chaos.patience import insist
from loadtests.chaos.requests import HOME
from loadtests.chaos.timing import SETTLE_SECONDS
from loadtests.chaos.workloads import NAMESPACE, WORKLOADS
from loadtests.chaos.world import World, is_owned
from reactor.errors import NotFound

Json = dict[str, Any]
_QUIET_SECONDS = 1.5
_POLL = 0.3
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_COST = "controller.kubernetes.io/pod-deletion-cost"
_HINTS = "/apis/rematch.io/v1alpha1/placementhints"
_REQUESTS = f"/apis/rematch.io/v1alpha1/namespaces/{HOME}/requests"


LEFTOVERS = {
    "the replica count is back where its owner wants it, all Ready": "replicas back",
    "no journal entry is left": "journal entry left",
    "no request is left": "request left",
    "no hint is left": "hint left",
    "no deletion cost is left": "deletion cost left",
    "no orphan is left": "orphan left",
}
"""What is looked for after a round, and as what it is reported."""


async def settle(world: World, seconds: float = SETTLE_SECONDS) -> list[Violation]:
    """What is not in order when the time is up; empty as soon as all has been in order for a moment."""
    found: list[Violation] = []
    quiet_since: float | None = None
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                found = await leftovers(world)
                now = world.clock.monotonic()
                if found:
                    quiet_since = None
                elif quiet_since is None:
                    quiet_since = now
                elif now - quiet_since >= _QUIET_SECONDS:
                    return []
                await world.clock.sleep(_POLL)
    return found


async def leftovers(world: World) -> list[Violation]:
    return [
        *_replicas(world),
        *_pods(world),
        *(await _owners(world)),
        *(await _entries(world, MOVES, "journal entry")),
        *(await _entries(world, _REQUESTS, "request")),
        *(await _hints(world)),
    ]


async def repair(world: World) -> None:
    """After a round that did not settle: what is left goes, so that the next round starts from the beginning."""
    for path in (MOVES, _REQUESTS):
        with suppress(NotFound):
            await insist(partial(world.api.delete, path, {}))
    for pod in list(world.observer.pods.values()):
        if not is_owned(pod):
            path = f"{_PODS}/{pod['metadata']['name']}"
            with suppress(NotFound):
                await insist(partial(world.api.delete, path, {"gracePeriodSeconds": 0}))
    for workload in WORKLOADS:
        body = {"spec": {"replicas": workload.replicas}}
        await insist(partial(world.api.patch, workload.path, body))
        world.want(workload, workload.replicas)


def _replicas(world: World) -> Iterator[Violation]:
    for workload in WORKLOADS:
        if not world.complete(workload):
            pods = [pod["metadata"]["name"] for pod in world.observer.of(workload.name)]
            text = f"{workload.name} wants {world.wanted[workload.name]} Ready pods and has {', '.join(pods) or 'none'}"
            yield Violation("replicas back", text)


def _pods(world: World) -> Iterator[Violation]:
    names = {workload.name for workload in WORKLOADS}
    for pod in world.observer.pods.values():
        meta = pod["metadata"]
        if _COST in meta.get("annotations", {}):
            yield Violation("deletion cost left", meta["name"])
        if not is_owned(pod) or meta.get("labels", {}).get("app") not in names:
            yield Violation("orphan left", meta["name"])


async def _owners(world: World) -> list[Violation]:
    found = []
    for workload in WORKLOADS:
        wanted = world.wanted[workload.name]
        replicas = (await insist(partial(world.api.get, workload.path)))["spec"]["replicas"]
        if replicas != wanted:
            found.append(Violation("replicas back", f"{workload.name}: spec.replicas is {replicas}, not {wanted}"))
    return found


async def _entries(world: World, path: str, what: str) -> list[Violation]:
    try:
        items = (await insist(lambda: world.api.get(path))).get("items") or ()
    except NotFound:
        return []
    return [Violation(f"{what} left", item["metadata"]["name"]) for item in items]


async def _hints(world: World) -> list[Violation]:
    try:
        items = (await insist(lambda: world.api.get(_HINTS))).get("items") or ()
    except NotFound:
        return []
    return [Violation("hint left", str(hint)) for item in items for hint in (item.get("spec") or {}).get("hints") or ()]
