"""The lab's kube-scheduler: a pure function for one pod, and a task for all pods with its scheduler name."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Sequence

from loadtests.embedded.api_errors import ApiError
from loadtests.embedded.binding import bind
from loadtests.embedded.event_recorder import EventRecorder
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import (
    changed,
    condition_of,
    is_active,
    name_of,
    namespace_of,
    status_of,
    timestamp,
    uid_of,
    with_condition,
)
from loadtests.embedded.resources import NODES, PODS, Json
from loadtests.embedded.scheduling.filters import refusal, unsupported
from loadtests.embedded.scheduling.occupancy import NodeState, Occupancy, pod_requests
from loadtests.embedded.scheduling.scores import total_scores
from loadtests.embedded.store import Change, ChangeType

DEFAULT_NAME = "default-scheduler"


def choose_node(pod: Json, nodes: Iterable[Json], pods: Iterable[Json], rng: random.Random | None = None) -> str | None:
    """The node kube-scheduler's defaults would choose on stated requests, or None when none fits.

    Among equals kube-scheduler picks at random: `rng` does; without one it is the first by name.
    """
    return choose_among(pod, list(Occupancy(nodes, pods).nodes.values()), rng)


def choose_among(pod: Json, states: Sequence[NodeState], rng: random.Random | None = None) -> str | None:
    """The same among nodes whose pods are counted already: cheap for many pods one after the other."""
    return _best(pod, _fitting(pod, states)[0], rng)


def _fitting(pod: Json, states: Sequence[NodeState]) -> tuple[list[NodeState], Counter[str]]:
    """The nodes that will do, and how many will not for which reason."""
    obstacle = unsupported(pod)
    if obstacle:
        return [], Counter({f"the lab's scheduler does not judge {obstacle}": len(states)})
    wanted, reasons, fitting = pod_requests(pod), Counter[str](), []
    for state in states:
        why = refusal(pod, wanted, state)
        if why:
            reasons[why] += 1
        else:
            fitting.append(state)
    return fitting, reasons


def _best(pod: Json, fitting: list[NodeState], rng: random.Random | None) -> str | None:
    if not fitting:
        return None
    scores = total_scores(pod, fitting)
    best = max(scores)
    equals = [state.name for state, score in zip(fitting, scores, strict=True) if score == best]
    return rng.choice(equals) if rng is not None else equals[0]


class DefaultScheduler:
    """Binds pending pods whose schedulerName is served, one batch per burst of changes."""

    def __init__(self, api: ObjectApi, names: Iterable[str] = (DEFAULT_NAME,)) -> None:
        self._api = api
        self._events = EventRecorder(api, DEFAULT_NAME)
        self._names = frozenset(names)
        self._pending: dict[str, tuple[str, str]] = {}
        self._wake = asyncio.Event()
        api.store.observe(self._notice)

    def serve(self, names: Iterable[str]) -> None:
        """Serves these scheduler names from now on: the lab lets it make a first placement for others, then stops."""
        self._names = frozenset(names)
        self._pending = {uid_of(pod): (namespace_of(pod), name_of(pod)) for pod in self._pods() if self._is_mine(pod)}
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self.schedule_pending()

    def schedule_pending(self) -> None:
        if not self._pending:
            return
        occupancy = Occupancy((stored.obj for stored in self._api.store.all(NODES)), self._pods())
        for namespace, name in list(self._pending.values()):
            found = self._api.store.find(PODS, namespace, name)
            if found is not None and self._is_mine(found.obj):
                self._schedule(found.obj, occupancy)

    def _pods(self) -> list[Json]:
        return [stored.obj for stored in self._api.store.all(PODS)]

    def _is_mine(self, pod: Json) -> bool:
        spec = pod["spec"]
        return (
            spec.get("schedulerName") in self._names
            and not spec.get("nodeName")
            and not spec.get("schedulingGates")
            and is_active(pod)
        )

    def _notice(self, change: Change) -> None:
        if change.resource is NODES:
            self._wake.set()
        elif change.resource is PODS:
            pod = change.new.obj
            if change.type is not ChangeType.DELETED and self._is_mine(pod):
                self._pending[uid_of(pod)] = change.new.key
                self._wake.set()
            else:
                self._pending.pop(uid_of(pod), None)
                if change.type is ChangeType.DELETED:
                    self._wake.set()

    def _schedule(self, pod: Json, occupancy: Occupancy) -> None:
        fitting, reasons = _fitting(pod, list(occupancy.nodes.values()))
        node = _best(pod, fitting, self._api.rng)
        namespace, name = namespace_of(pod), name_of(pod)
        if node is None:
            self._say_unschedulable(pod, len(occupancy.nodes), reasons)
            return
        metadata = {"name": name, "namespace": namespace, "uid": uid_of(pod)}
        try:
            bind(self._api, namespace, name, {"metadata": metadata, "target": {"kind": "Node", "name": node}})
        except ApiError:
            return  # somebody else was faster; the watch will say what became of it
        occupancy.place(pod, node)
        message = f"Successfully assigned {namespace}/{name} to {node}"
        self._events.record_once(pod, "Scheduled", message, "Binding")

    def _say_unschedulable(self, pod: Json, nodes: int, reasons: Counter[str]) -> None:
        listed = ", ".join(f"{count} {why}" for why, count in sorted(reasons.items()))
        message = f"0/{nodes} nodes are available: {listed}." if reasons else "no nodes available to schedule pods"
        before = condition_of(pod, "PodScheduled")
        if before is not None and before.get("message") == message:
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": timestamp(self._api.clock.now()),
        }
        self._api.update_status(PODS, changed(pod, status=with_condition(status_of(pod), condition)))
        self._events.record(pod, "FailedScheduling", message, kind="Warning")
