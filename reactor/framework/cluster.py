"""`Cluster`, `Node` and `Pod`: a blocking view of the cluster for people who bring their own algorithm."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

import structlog

from reactor.cluster.records import Pod as PodRecord
from reactor.cluster.requests import RequestedMove
from reactor.errors import ClusterError, InputError, MetricsError
from reactor.framework.event_loop import LoopThread
from reactor.framework.objects import (
    ClusterInfo,
    NodeInfo,
    PodInfo,
    PodMetrics,
    PodStatus,
    is_worker,
    node_info,
    pod_info,
    pod_metrics,
)
from reactor.framework.session import LEAD_SECONDS, SYNC_SECONDS, ConnectionOptions, Session, open_session
from reactor.planning.requested_moves import find_pod
from reactor.record.logs import configure_logs
from reactor.state.moves import MoveState
from reactor.state.snapshot import Snapshot

T = TypeVar("T")

READ_SECONDS = 30.0
WRITE_SECONDS = 60.0
PLAN_SECONDS = 600.0
_SUFFIX = 5
"""Characters that a ReplicaSet appends to `generateName`."""
_POLL_SECONDS = 0.1
_BY = "an allocation plan"


@dataclass(frozen=True, slots=True)
class AllocationResult:
    """What became of an allocation plan, by pod. Pods that were on their node already are in neither."""

    moved: Mapping[str, str] = field(default_factory=dict)
    """Their new node: moved there, or bound there if they were pending."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why they were not."""


class Cluster:
    """Blocking. It watches the cluster in a thread of its own until `close`, so a second read costs nothing. Every
    method ends within its deadline, with an answer or with a RematchError that says what is wrong.

    `namespace` limits it to the pods of one namespace; without it names that several pods have are written
    namespace/name.
    """

    def __init__(
        self,
        kubeconfig: str | None = None,
        context: str | None = None,
        *,
        namespace: str = "",
        settings: str | None = None,
    ) -> None:
        self._session = _shared(ConnectionOptions(kubeconfig, context, settings))
        self._namespace = namespace

    def get_info(self) -> ClusterInfo:
        return self._read(self._info)

    def get_nodes(self) -> list[NodeInfo]:
        """Ready workers, each with its managed pods. What is not measured is left out, never shown as idle; `left_out`
        says why."""
        return self._read(self._nodes)

    def left_out(self) -> list[str]:
        """The nodes and pods that `get_nodes` does not show, with the reason."""
        return self._read(self._left_out)

    def get_pending_pods(self) -> list[PodStatus]:
        """Managed pods without a node."""
        return self._read(lambda seen: [seen.status(pod) for pod in seen.pods if pod.node is None])

    def get_unready_pods(self) -> list[PodStatus]:
        """Managed pods that are not Running and Ready, pending and Terminating ones included."""
        return self._read(lambda seen: [seen.status(pod) for pod in seen.pods if not _is_ready(pod)])

    def get_pods_from_node(self, name: str) -> list[PodInfo]:
        return self._read(lambda seen: seen.pods_on(name))

    def get_node_from_pod(self, name: str) -> str | None:
        """None while it is pending. Raises InputError for an unknown pod."""
        return self._read(lambda seen: seen.find(name).node)

    def get_metrics_of_pod(self, name: str) -> PodMetrics:
        """Raises MetricsError for a pod without fresh measurements."""
        return self._read(lambda seen: pod_metrics(name, seen.find(name), seen.snapshot))

    def get_allocation_plan(self) -> dict[str, str]:
        """Where the managed pods are now: {"pod": "node"}."""
        return self._read(lambda seen: {seen.names[pod.uid]: pod.node for pod in seen.pods if pod.node is not None})

    def set_allocation_plan(self, plan: Mapping[str, str], deadline: float = PLAN_SECONDS) -> AllocationResult:
        """Bring the pods to the nodes that the plan names. Others stay, and a pod that is there already is not touched.

        Pending pods are bound. Running ones are moved as by Rematch's own plans: checked, one after the other, with a
        replacement first where that is possible. Raises InputError for unknown pods and nodes, before anything is
        changed. After the deadline, moves that have begun go on: they are in the journal.
        """
        return self._session.call(self._carry_out(dict(plan)), "set_allocation_plan", deadline)

    def evict(self, name: str) -> None:
        self._session.call(self._evict(name), f"the eviction of {name}", WRITE_SECONDS)

    def schedule(self, name: str, node: str, deadline: float = WRITE_SECONDS) -> None:
        """Bind the pending pod of this name, or whose generated name begins with it, as soon as there is one."""
        self._session.call(self._schedule(name, node, deadline), f"schedule {name} on {node}", deadline + READ_SECONDS)

    def close(self) -> None:
        """Also for the other objects of the same connection. Another use opens it again."""
        self._session.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    info = property(get_info)
    nodes = property(get_nodes)
    pending_pods = property(get_pending_pods)
    unready_pods = property(get_unready_pods)
    not_ready_pods = unready_pods
    """As KSE's earlier scripts call it."""

    def _read(self, read: Callable[[_Seen], T]) -> T:
        async def seen() -> T:
            session = await self._session.opened()
            return read(_seen(session, self._namespace))

        return self._session.call(seen(), "reading the cluster", SYNC_SECONDS + READ_SECONDS)

    def _info(self, seen: _Seen) -> ClusterInfo:
        return {
            "server": seen.server,
            "scheduler_name": seen.scheduler_name,
            "nodes": len(seen.snapshot.cluster.nodes),
            "pods": len(seen.pods),
            "pending_pods": sum(pod.node is None for pod in seen.pods),
            "unready_pods": sum(not _is_ready(pod) for pod in seen.pods),
        }

    def _nodes(self, seen: _Seen) -> list[NodeInfo]:
        found = []
        for node in seen.snapshot.cluster.nodes.values():
            if node.ready and is_worker(node):
                with suppress(MetricsError):  # `left_out` names it
                    found.append(node_info(node, seen.pods_on(node.name), seen.snapshot))
        return sorted(found, key=lambda node: node["name"])

    def _left_out(self, seen: _Seen) -> list[str]:
        reasons = []
        for node in seen.snapshot.cluster.nodes.values():
            try:
                if not node.ready:
                    reasons.append(f"node {node.name}: it is not Ready")
                elif is_worker(node):
                    node_info(node, [], seen.snapshot)
            except MetricsError as error:
                reasons.append(str(error))
        for pod in seen.pods:
            if pod.node is not None and pod.deleting is None:
                try:
                    pod_info("", pod, seen.snapshot)
                except MetricsError as error:
                    reasons.append(str(error))
        return sorted(reasons)

    async def _carry_out(self, plan: dict[str, str]) -> AllocationResult:
        session = await self._session.opened()
        seen = _seen(session, self._namespace)
        found = {name: seen.find(name) for name in plan}
        for name, node in plan.items():
            if node not in seen.snapshot.cluster.nodes:
                raise InputError(f"{name}: there is no node {node}")
        moved: dict[str, str] = {}
        refused: dict[str, str] = {}
        for name, pod in found.items():
            if pod.node is None:
                try:
                    await session.bind(pod, plan[name])
                    moved[name] = plan[name]
                except (InputError, ClusterError) as error:
                    refused[name] = str(error)
        away = [name for name, pod in found.items() if pod.node is not None and pod.node != plan[name]]
        moves = {found[name].key: RequestedMove(found[name].key, plan[name], found[name].uid) for name in away}
        names = {found[name].key: name for name in away}
        for key, why in session.check(list(moves.values()), _BY).refusals(moves.values()).items() if moves else ():
            refused[names[key]] = why
            del moves[key]
        for result in await session.carry_out(list(moves.values()), _BY) if moves else ():
            if result.state == MoveState.DONE:
                moved[names[result.pod]] = result.to
            else:
                refused[names[result.pod]] = f"{result.state} {result.message}".rstrip()
        return AllocationResult(moved, refused)

    async def _evict(self, name: str) -> None:
        session = await self._session.opened()
        await session.evict(_seen(session, self._namespace).find(name))

    async def _schedule(self, name: str, node: str, deadline: float) -> None:
        session = await self._session.opened()
        clock = session.live.controller.clock
        ends = clock.monotonic() + deadline
        while True:
            waiting = [pod for pod in _seen(session, self._namespace).pods if _waits(pod, name)]
            if waiting:
                await session.bind(min(waiting, key=lambda pod: pod.created), node)
                return
            if clock.monotonic() >= ends:
                raise ClusterError(f"no pending pod of the name {name} appeared within {deadline:g} s")
            await clock.sleep(_POLL_SECONDS)


class Node:
    """A node by its name."""

    def __init__(self, name: str, cluster: Cluster | None = None) -> None:
        self.name = name
        self._cluster = cluster or Cluster()

    def get_pods(self) -> list[PodInfo]:
        """The managed and measured pods on it."""
        return self._cluster.get_pods_from_node(self.name)

    def get_metrics(self) -> NodeInfo:
        found = [node for node in self._cluster.get_nodes() if node["name"] == self.name]
        if not found:
            raise InputError(f"{self.name} is no measured, Ready worker; Cluster.left_out() says why")
        return found[0]

    pods = property(get_pods)
    metrics = property(get_metrics)


class Pod:
    """A pod by its name, or by namespace/name."""

    def __init__(self, name: str, cluster: Cluster | None = None) -> None:
        self.name = name
        self._cluster = cluster or Cluster()

    def get_node(self) -> str | None:
        """None while it is pending."""
        return self._cluster.get_node_from_pod(self.name)

    def get_metrics(self) -> PodMetrics:
        return self._cluster.get_metrics_of_pod(self.name)

    def evict(self) -> None:
        """By the eviction API, which respects PodDisruptionBudgets. Its owner makes another pod, which `schedule` can
        bind. To move a pod safely use `Cluster.set_allocation_plan`."""
        self._cluster.evict(self.name)

    def schedule(self, node: str) -> None:
        """Bind it, or the pending pod whose generated name begins with this name."""
        self._cluster.schedule(self.name, node)

    node = property(get_node)
    metrics = property(get_metrics)


@dataclass(frozen=True, slots=True)
class _Seen:
    """The managed pods of one snapshot, and the names that users write."""

    snapshot: Snapshot
    pods: list[PodRecord]
    names: Mapping[str, str]
    """By UID: the name alone where it is unique, else namespace/name."""
    namespace: str
    server: str
    scheduler_name: str

    def find(self, name: str) -> PodRecord:
        pod = find_pod(name, self.snapshot.cluster, self.namespace)
        if pod.uid not in self.names:
            raise InputError(f"{pod.key} is not managed: see `managed` in the settings, and its schedulerName")
        return pod

    def pods_on(self, node: str) -> list[PodInfo]:
        found = []
        for pod in self.pods:
            if pod.node == node and pod.deleting is None:
                with suppress(MetricsError):  # `Cluster.left_out` names it
                    found.append(pod_info(self.names[pod.uid], pod, self.snapshot))
        return found

    def status(self, pod: PodRecord) -> PodStatus:
        return {"name": self.names[pod.uid], "namespace": pod.namespace, "status": pod.status}


def _seen(session: Session, namespace: str) -> _Seen:
    snapshot = session.snapshot()
    everybody = snapshot.cluster.pods.values()
    pods = [
        pod
        for pod in everybody
        if not pod.finished and session.manages(pod) and (not namespace or pod.namespace == namespace)
    ]
    pods.sort(key=lambda pod: pod.key)
    times = Counter(pod.name for pod in everybody if not namespace or pod.namespace == namespace)
    names = {pod.uid: pod.name if times[pod.name] == 1 else pod.key for pod in pods}
    return _Seen(snapshot, pods, names, namespace, session.server, session.settings.scheduler_name)


def _is_ready(pod: PodRecord) -> bool:
    return pod.phase == "Running" and pod.ready and pod.deleting is None


def _waits(pod: PodRecord, name: str) -> bool:
    """By its name, with or without the namespace, or by the part of it that its ReplicaSet gave."""
    if pod.node is not None or pod.deleting is not None:
        return False
    return name in (pod.name, pod.key, pod.name[:-_SUFFIX], pod.key[:-_SUFFIX])


class _SharedSession:
    """One thread, one connection and one set of watches for all objects with the same options."""

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        self._starting = threading.Lock()
        self._thread: LoopThread | None = None
        self._stack: AsyncExitStack | None = None
        self._opening: asyncio.Lock | None = None
        self._session: Session | None = None

    def call(self, work: Coroutine[Any, Any, T], what: str, deadline: float) -> T:
        with self._starting:
            thread = self._thread = self._thread or LoopThread()
        return thread.call(work, what, deadline)

    async def opened(self) -> Session:
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._session is None:
                if not structlog.is_configured():
                    configure_logs(level="warning")
                stack = AsyncExitStack()
                self._session = await stack.enter_async_context(open_session(self._options))
                self._stack = stack
            return self._session

    def close(self) -> None:
        with self._starting:
            thread, stack = self._thread, self._stack
            self._thread = self._stack = self._session = self._opening = None
        if thread is None:
            return
        try:
            if stack is not None:
                thread.call(stack.aclose(), "closing the connection", LEAD_SECONDS)
        finally:
            thread.close(LEAD_SECONDS)


_SESSIONS: dict[ConnectionOptions, _SharedSession] = {}


def _shared(options: ConnectionOptions) -> _SharedSession:
    return _SESSIONS.setdefault(options, _SharedSession(options))
