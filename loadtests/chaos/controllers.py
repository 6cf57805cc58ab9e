"""Controllers as processes that can be killed, paused and denied their disk, and that are started again."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from loadtests.chaos.audit import credential_of
from loadtests.chaos.proxy import FaultProxy
from loadtests.controlplane import ControlPlane
from loadtests.controlplane.credentials import write_kubeconfig
from loadtests.tools.processes import ends_with_us, without_proxies
from reactor.clock import Clock
from reactor.errors import ClusterError

NAMESPACE, ACCOUNT = "rematch", "rematch"
CONFIG_MAP = f"{NAMESPACE}/rematch"
_ENTRY = "from reactor.cli.main import main; main()"
_RESTART_SECONDS = 0.5
_TOKEN_SECONDS = 4 * 3600
_LIMIT = 64
"""Bytes: no file of the process can grow."""


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One process of a controller; `until` is infinite while it runs."""

    controller: str
    credential: str
    pid: int
    since: float
    until: float = float("inf")
    killed: bool = False
    """By us; otherwise it ended by itself."""


class ControllerProcess:
    """One replica of the controller behind its own proxy, with its own store, started again whenever it ends."""

    def __init__(self, name: str, plane: ControlPlane, proxy: FaultProxy, folder: Path, clock: Clock) -> None:
        self.name = name
        self.proxy = proxy
        self.store = folder / f"{name}.db"
        self.log = folder / f"{name}.log"
        self.incarnations: list[Incarnation] = []
        self._kubeconfig = folder / f"{name}.kubeconfig"
        self._plane = plane
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self._killed = False
        proxy.kill = self.kill

    @property
    def pid(self) -> int | None:
        """None between two processes."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    def kill(self) -> None:
        self._killed = True
        self._signal(signal.SIGKILL)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def fill_disk(self) -> None:
        """Its files cannot grow any more, as on a full disk. Its log is a pipe and goes on."""
        self._limit(_LIMIT)

    def free_disk(self) -> None:
        self._limit(resource.RLIM_INFINITY)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        keeping = asyncio.create_task(self._keep_running())
        try:
            yield
        finally:
            keeping.cancel()
            self.resume()
            self.kill()
            await asyncio.gather(keeping, return_exceptions=True)
            if self._process is not None:
                await self._process.wait()

    async def _keep_running(self) -> None:
        while True:
            try:
                token = await self._plane.token(NAMESPACE, ACCOUNT, seconds=_TOKEN_SECONDS)
            except ClusterError:
                await self._clock.sleep(_RESTART_SECONDS)
                continue
            await self._run_once(token)
            await self._clock.sleep(_RESTART_SECONDS)

    async def _run_once(self, token: str) -> None:
        write_kubeconfig(self._kubeconfig, self.proxy.url, self._plane.ca, token=token)
        self._process = process = await asyncio.create_subprocess_exec(
            *ends_with_us(),
            *self._command(),
            env=without_proxies(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=2**20,
        )
        self._killed = False
        begun = Incarnation(self.name, credential_of(token), process.pid, self._clock.now())
        self.incarnations.append(begun)
        assert process.stdout is not None
        with self.log.open("ab") as log:
            while chunk := await process.stdout.read(2**16):
                log.write(chunk)
                log.flush()
        await process.wait()
        ended = Incarnation(begun.controller, begun.credential, begun.pid, begun.since, self._clock.now(), self._killed)
        self.incarnations[-1] = ended

    def _command(self) -> list[str]:
        own = ["--kubeconfig", str(self._kubeconfig), "--store", str(self.store), "--configmap", CONFIG_MAP]
        return [sys.executable, "-c", _ENTRY, "run", *own, "--port", "0", "--log-format", "json"]

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is not None:
            os.kill(self.pid, number)

    def _limit(self, size: int) -> None:
        if self.pid is not None:
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
