"""The embedded cluster as one object: start it, use it, stop it."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import yaml
from aiohttp import web

from loadtests.embedded.controllers import Controllers
from loadtests.embedded.default_scheduler import DEFAULT_NAME, DefaultScheduler
from loadtests.embedded.metrics_api import MetricsProvider, NoMetrics
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.resources import NAMESPACES, PRIORITYCLASSES
from loadtests.embedded.store import ObjectStore
from loadtests.embedded.web.app import ApiApp
from reactor.clock import Clock, SystemClock

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system", "rematch")
"""Ours is there as after an installation: the journal is in it."""
_CRITICAL = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_STOP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    seed: int = 0
    """Names, UIDs and the scheduler's choice among equals follow from it."""
    token: str = ""
    """A bearer token that every request has to carry; empty lets everyone in (the server is on loopback only)."""
    controllers: bool = True
    schedule: frozenset[str] = frozenset({DEFAULT_NAME})
    """The scheduler names whose pods are placed by kube-scheduler's default scores; empty for none."""
    history: int = 5_000
    """How many changes per kind a watch can go back; older gets 410."""


DEFAULTS = ClusterOptions()


class EmbeddedCluster:
    def __init__(
        self,
        options: ClusterOptions = DEFAULTS,
        *,
        clock: Clock | None = None,
        metrics: MetricsProvider | None = None,
    ) -> None:
        self._options = options
        self.store = ObjectStore(options.history)
        self.api = ObjectApi(self.store, clock or SystemClock(), random.Random(options.seed))
        self.scheduler = DefaultScheduler(self.api, options.schedule)
        self._controllers = Controllers(self.api)
        self._metrics = metrics or NoMetrics()
        self._runner: web.AppRunner | None = None
        self._closing: asyncio.Future[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._port = 0
        self._create_basics()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self, port: int = 0) -> None:
        """Listens on 127.0.0.1 (port 0 takes a free one) and starts the controllers."""
        self._closing = asyncio.get_running_loop().create_future()
        app = ApiApp(self.api, self._metrics, self._options.token, self._closing).build()
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=_STOP_SECONDS, keepalive_timeout=120.0
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self._port = self._runner.addresses[0][1]
        runs = [self.scheduler.run()]
        if self._options.controllers:
            runs.append(self._controllers.run())
        self._tasks = [asyncio.create_task(run) for run in runs]
        for task in self._tasks:
            task.add_done_callback(_report_failure)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        if self._closing is not None and not self._closing.done():
            self._closing.set_result(None)
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> EmbeddedCluster:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def kubeconfig(self, path: Path) -> Path:
        """Writes a kubeconfig for this cluster, readable by its owner only."""
        user = {"token": self._options.token} if self._options.token else {}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "embedded", "cluster": {"server": self.url}}],
            "users": [{"name": "embedded", "user": user}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "embedded"}}],
            "current-context": "embedded",
        }
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    def _create_basics(self) -> None:
        for name in _NAMESPACES:
            self.api.create(NAMESPACES, {"metadata": {"name": name}})
        for name, value in _CRITICAL.items():
            self.api.create(PRIORITYCLASSES, {"metadata": {"name": name}, "value": value})


def _report_failure(task: asyncio.Task[None]) -> None:
    """A controller that died must not go unnoticed while the server still answers."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        context = {"message": "a part of the embedded cluster failed", "exception": error}
        task.get_loop().call_exception_handler(context)
