"""A live view of a cluster and the means to act on it, for programs that bring their own algorithm."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from reactor.app import LiveController, Options, open_controller
from reactor.binding import bind_pending
from reactor.cluster.api import ApiRequest
from reactor.cluster.kinds import ObjectName
from reactor.cluster.records import Pod
from reactor.cluster.requests import Action, MoveResult, RequestedMove, RequestSpec
from reactor.cluster.writes import Binding, ClusterWriter, Eviction
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.eligibility import Eligibility, Management
from reactor.errors import ClusterError, InputError
from reactor.execution.asking import ask, controller_leads
from reactor.planning.problem_builder import fits_now
from reactor.planning.requested_moves import RequestedPlan, plan_requested
from reactor.settings.model import Mode, Settings
from reactor.state.moves import MoveState
from reactor.state.snapshot import Snapshot

SYNC_SECONDS = 60.0
LEAD_SECONDS = 20.0
_ANSWER_SECONDS = 10.0
_POLL_SECONDS = 0.1
_CONFIG_MAP = ObjectName("rematch", "rematch")


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Without a kubeconfig and a context: the service account inside a cluster, else the default kubeconfig."""

    kubeconfig: str | None = None
    context: str | None = None
    settings_file: str | None = None
    """Instead of the ConfigMap rematch/rematch, which says which pods are managed."""


@dataclass
class Session:
    """Watches the cluster while it is open. Nothing is written before `carry_out`, `evict` or `bind`."""

    live: LiveController
    _leading: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def settings(self) -> Settings:
        return self.live.settings.get()

    @property
    def server(self) -> str:
        return self.live.connection.server

    def snapshot(self) -> Snapshot:
        controller = self.live.controller
        return controller.state.freeze(controller.executor.active_moves())

    def manages(self, pod: Pod) -> bool:
        """Never pods of kube-system. Only pods of our scheduler name, or of namespaces where any is taken."""
        settings = self.settings
        management = Management.of(settings)
        own = pod.scheduler_name == settings.scheduler_name or management.takes_any_scheduler(pod.namespace)
        return own and management.covers(pod)

    def check(self, moves: Sequence[RequestedMove], by: str) -> RequestedPlan:
        """The plan for these moves. Nothing is changed. Raises InputError for unknown pods and nodes."""
        cooldowns = self.live.controller.memory.cooldowns
        return plan_requested(moves, self.snapshot(), cooldowns, self.settings, by)

    async def carry_out(self, moves: Sequence[RequestedMove], by: str) -> tuple[MoveResult, ...]:
        """By the controller that leads. If there is none, this process leads from now on, until the session ends."""
        live, clock = self.live, self.live.controller.clock
        if not self._leading and not await controller_leads(live.connection, live.namespace, clock):
            self._leading = [asyncio.create_task(live.lead()), asyncio.create_task(self._bind_replacements())]
            await self._until_leading()
        request = await ask(live.connection, live.namespace, RequestSpec(Action.APPLY, by, moves=tuple(moves)), clock)
        if not request.status.moves:
            raise ClusterError(f"request {request.metadata.name} failed: {request.status.message}")
        await self._until_seen(request.status.moves)
        return request.status.moves

    async def evict(self, pod: Pod) -> None:
        """Raises InputError for a pod that may not be moved, ClusterError when the API server refuses."""
        why = Eligibility(self.snapshot(), Cooldowns(), self.settings).why_not(pod)
        if why is not None:
            raise InputError(f"{pod.key} is not evicted: {why}")
        answer = await self._writer.evict(pod)
        if answer.outcome is not Eviction.ACCEPTED:
            raise ClusterError(f"{pod.key} was not evicted: {answer.outcome} {answer.message}".rstrip())

    async def bind(self, pod: Pod, node: str) -> None:
        """Raises InputError for a node that cannot take the pod, ClusterError when the API server refuses."""
        snapshot = self.snapshot()
        reservations = snapshot.moves.reservations(snapshot.at, self.settings.execution)
        if node not in snapshot.cluster.nodes:
            raise InputError(f"there is no node {node}")
        if not fits_now(pod, node, snapshot, reservations):
            raise InputError(f"{node} cannot take {pod.key}: no room, or a constraint of the pod forbids it")
        answer = await self._writer.bind(pod, node)
        if answer.outcome is not Binding.BOUND:
            raise ClusterError(f"{pod.key} was not bound to {node}: {answer.outcome} {answer.message}".rstrip())
        self.live.controller.state.assume_bound(pod, node)

    @property
    def _writer(self) -> ClusterWriter:
        return ClusterWriter(self.live.connection, self.live.controller.clock)

    async def _until_leading(self) -> None:
        acting, clock = self.live.controller.acting, self.live.controller.clock
        deadline = clock.monotonic() + LEAD_SECONDS
        while acting.hindrance:
            if clock.monotonic() >= deadline or acting.paused is not None:
                raise ClusterError(f"nothing was changed: {acting.hindrance}")
            await clock.sleep(_POLL_SECONDS)

    async def _bind_replacements(self) -> None:
        """Only of moves under way: which node other pending pods get is up to the user's algorithm."""
        controller = self.live.controller
        observing = self.settings.model_copy(update={"mode": Mode.OBSERVE})
        parts = replace(controller.binding_parts, settings=lambda: observing)
        while True:
            if controller.executor.under_way:
                await bind_pending(parts)
            await controller.clock.sleep(_POLL_SECONDS)

    async def _until_seen(self, results: Sequence[MoveResult]) -> None:
        """Until our own watch shows that the moved pods are gone: the next read is not older than the moves."""
        done = {result.pod for result in results if result.state == MoveState.DONE}
        for _ in range(int(_ANSWER_SECONDS / _POLL_SECONDS)):
            pods = self.snapshot().cluster.pods.values()
            wrong = {
                result.pod for result in results for pod in pods if pod.key == result.pod and pod.node != result.to
            }
            if not wrong & done:
                return
            await self.live.controller.clock.sleep(_POLL_SECONDS)

    async def end(self) -> None:
        for task in self._leading:
            task.cancel()
        await asyncio.gather(*self._leading, return_exceptions=True)
        await self.live.step_down()


@asynccontextmanager
async def open_session(given: ConnectionOptions, *, dry_run: bool = False) -> AsyncIterator[Session]:
    """Synced and measured once. With `dry_run` nothing can be carried out."""
    with tempfile.TemporaryDirectory(prefix="rematch-session-") as folder:
        file = Path(given.settings_file) if given.settings_file is not None else None
        options = Options(
            store=Path(folder, "session.db"),
            kubeconfig=given.kubeconfig,
            context=given.context,
            settings_file=file,
            config_map=None if file is not None else _CONFIG_MAP,
            namespace="" if file is None else _CONFIG_MAP.namespace,
            dry_run=dry_run,
            mode=Mode.OBSERVE,
        )
        async with open_controller(options) as live:
            # An API server that does not answer is reported now, not after the watches have tried for a minute.
            await live.connection.send(ApiRequest("GET", "/version", deadline=_ANSWER_SECONDS))
            session = Session(live)
            watching = asyncio.create_task(live.connect())
            try:
                await live.until_synced(SYNC_SECONDS)
                await live.metrics.once()
                if live.steering_check is not None:
                    await live.steering_check.step()
                yield session
            finally:
                await session.end()
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
