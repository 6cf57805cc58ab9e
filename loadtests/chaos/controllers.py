"""Controllers as processes that can be killed, paused and denied their disk, and that are started again."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from loadtests.chaos.audit import credential_of
from loadtests.chaos.proxy import FaultProxy
from loadtests.chaos.requests import HOME
from loadtests.chaos.timing import LEASE_SECONDS
from loadtests.controlplane import ControlPlane
from loadtests.controlplane.credentials import write_kubeconfig
from loadtests.tools.processes import ends_with_us, without_proxies
from reactor.cli.commands import run as run_command
from reactor.clock import Clock
from reactor.errors import ClusterError

ACCOUNT = "rematch"
CONFIG_MAP = f"{HOME}/rematch"
_RESTART_SECONDS = 0.5
_TOKEN_SECONDS = 4 * 3600
CONTROLLER_NAMES = "ab"
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


def store_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.db"


class ControllerProcess:
    """One replica of the controller behind its own proxy, with its own store, started again whenever it ends."""

    def __init__(self, name: str, plane: ControlPlane, proxy: FaultProxy, folder: Path, clock: Clock) -> None:
        self.name = name
        self.proxy = proxy
        self.store = store_path(folder, name)
        self.log = folder / f"{name}.log"
        self.tasks = folder / f"{name}.tasks"
        """Where it writes the number of its asyncio tasks when it is asked to."""
        self.incarnations: list[Incarnation] = []
        self._kubeconfig = folder / f"{name}.kubeconfig"
        self._plane = plane
        self._clock = clock
        self.pid: int | None = None
        """None between two processes."""
        self._killed = False
        proxy.kill = self.kill

    def kill(self) -> None:
        self._killed = True
        self._signal(signal.SIGKILL)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def count_tasks(self) -> None:
        self._signal(signal.SIGUSR2)

    def fill_disk(self) -> None:
        """Its files cannot grow any more, as on a full disk. Its log is a pipe and goes on."""
        self._limit(_LIMIT)

    def free_disk(self) -> None:
        self._limit(resource.RLIM_INFINITY)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        starter = await asyncio.create_subprocess_exec(
            *ends_with_us(),
            *(sys.executable, "-m", "loadtests.chaos.starter", str(self.tasks)),
            env=without_proxies(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        tasks = [asyncio.create_task(self._keep_running(starter)), asyncio.create_task(self._write_log(starter))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            starter.kill()
            await asyncio.gather(starter.wait(), *tasks, return_exceptions=True)

    async def _keep_running(self, starter: asyncio.subprocess.Process) -> None:
        while True:
            try:
                token = await self._plane.token(HOME, ACCOUNT, seconds=_TOKEN_SECONDS)
            except ClusterError:
                await self._clock.sleep(_RESTART_SECONDS)
                continue
            await self._run_once(starter, token)
            await self._clock.sleep(_RESTART_SECONDS)

    async def _run_once(self, starter: asyncio.subprocess.Process, token: str) -> None:
        assert starter.stdin is not None
        assert starter.stdout is not None
        write_kubeconfig(self._kubeconfig, self.proxy.url, self._plane.ca, token=token)
        starter.stdin.write(msgspec.json.encode(self._arguments()) + b"\n")
        self.pid = int((await starter.stdout.readline()).split()[1])
        self._killed = False
        begun = Incarnation(self.name, credential_of(token), self.pid, self._clock.now())
        self.incarnations.append(begun)
        await starter.stdout.readline()
        self.pid = None
        self.incarnations[-1] = replace(begun, until=self._clock.now(), killed=self._killed)

    async def _write_log(self, starter: asyncio.subprocess.Process) -> None:
        assert starter.stderr is not None
        with self.log.open("ab", buffering=0) as log:
            while chunk := await starter.stderr.read(2**16):
                log.write(chunk)

    def _arguments(self) -> list[str]:
        own = ["--kubeconfig", str(self._kubeconfig), "--store", str(self.store), "--configmap", CONFIG_MAP]
        return ["run", *own, *_lease_flags(), "--port", "0", "--log-format", "json"]

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is not None:
            os.kill(self.pid, number)

    def _limit(self, size: int) -> None:
        if self.pid is not None:
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _lease_flags() -> list[str]:
    """Short ones, so that a failover takes seconds; none where the command has no leader election."""
    if not any(parameter.name == "lease_duration" for parameter in run_command.params):
        return []
    timing = (("duration", LEASE_SECONDS), ("renew-deadline", LEASE_SECONDS * 0.7), ("retry", LEASE_SECONDS / 8))
    return [word for name, seconds in timing for word in (f"--lease-{name}", f"{seconds:g}")]
