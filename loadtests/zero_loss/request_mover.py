"""Moves by `Request` objects, as `rematch move` and `rematch apply` make them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from loadtests.nodes.spec import LabError
from loadtests.zero_loss.moving import Landed
from loadtests.zero_loss.pods import DEADLINE, POLL, AppPod, AppPods, new_pods
from reactor.clock import Clock
from reactor.cluster.connection import DEFAULT_NAMESPACE
from reactor.cluster.requests import Action, MoveResult, Request, RequestedMove, RequestSpec
from reactor.decision.wait_reasons import Reason
from reactor.state.moves import MoveState

_REQUESTS = f"/apis/rematch.io/v1alpha1/namespaces/{DEFAULT_NAMESPACE}/requests"
_MOVES = f"/apis/rematch.io/v1alpha1/namespaces/{DEFAULT_NAMESPACE}/moves"
_UNMEASURED = Reason.NO_FRESH_METRICS.value
"""New pods wait until they are measured."""


@dataclass(slots=True)
class _Watched:
    """What the journal showed of one move, and since when."""

    strategy: str
    first: float
    last: float
    retiring: float | None = None


@dataclass(slots=True)
class RequestMover:
    pods: AppPods
    nodes: Sequence[str]
    clock: Clock
    problems: list[str] = field(default_factory=list)

    async def round(self, wanted: Mapping[str, int]) -> list[Landed]:
        """All in one request: the controller carries out one after the other."""
        asked = self.clock.now()
        before = await self.pods.by_app()
        moving = {
            f"{self.pods.namespace}/{pod.name}": pod for app, most in wanted.items() for pod in before[app][:most]
        }
        request, watched = await self._carried_out(await self._create(moving))
        after = await self.pods.until_complete()
        new = {app: new_pods(before[app], after[app]) for app in before}
        if not request.status.moves:
            self.problems.append(request.status.message)
        landed = []
        for result in request.status.moves:
            pod, seen = moving[result.pod], watched.get(result.pod)
            if result.state != MoveState.DONE or seen is None or not new[pod.app]:
                self._note(result)
                continue
            node = _taken(new[pod.app], result.to)
            times = (asked, seen.first, seen.retiring, seen.last)
            landed.append(Landed(pod.app, pod.node, result.to, node, seen.strategy, *times))
        return landed

    async def _create(self, moving: Mapping[str, AppPod]) -> str:
        moves = tuple(RequestedMove(key, self._target(pod.node), pod.uid) for key, pod in moving.items())
        body = {
            "apiVersion": "rematch.io/v1alpha1",
            "kind": "Request",
            "metadata": {"generateName": "zero-loss-"},
            "spec": msgspec.to_builtins(RequestSpec(Action.APPLY, "zero loss", moves=moves)),
        }
        return str((await self.pods.api.create(_REQUESTS, body))["metadata"]["name"])

    def _target(self, node: str) -> str:
        """The next one in turn."""
        return self.nodes[(self.nodes.index(node) + 1) % len(self.nodes)]

    async def _carried_out(self, name: str) -> tuple[Request, dict[str, _Watched]]:
        watched: dict[str, _Watched] = {}
        try:
            async with asyncio.timeout(DEADLINE):
                while True:
                    self._watch((await self.pods.api.get(_MOVES))["items"], watched)
                    request = msgspec.convert(await self.pods.api.get(f"{_REQUESTS}/{name}"), Request)
                    if request.ended:
                        return request, watched
                    await asyncio.sleep(POLL)
        except TimeoutError as error:
            raise LabError(f"the request {name} was not carried out within {DEADLINE:g} s") from error

    def _watch(self, items: Iterable[dict[str, dict[str, str]]], watched: dict[str, _Watched]) -> None:
        now = self.clock.now()
        for spec in (item["spec"] for item in items):
            seen = watched.setdefault(spec["pod"], _Watched(spec["strategy"], now, now))
            seen.last = now
            if seen.retiring is None and spec["state"] == MoveState.RETIRING:
                seen.retiring = now

    def _note(self, result: MoveResult) -> None:
        if _UNMEASURED not in result.message:
            self.problems.append(f"{result.pod}: {result.state} {result.message}")


def _taken(new: list[AppPod], target: str) -> str:
    """The node of the replacement that is on the target, else of any other; each counts once."""
    found = next((pod for pod in new if pod.node == target), new[0])
    new.remove(found)
    return found.node
