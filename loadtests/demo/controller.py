"""The controller as a process of its own, as in production: `rematch run` with a kubeconfig and a settings file."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import aiohttp
import msgspec

from loadtests.tools.processes import ends_with_us
from reactor.errors import ClusterError
from reactor.record.history_reader import HistoryEntry
from reactor.web.view import Overview, Series

T = TypeVar("T")

START_DEADLINE = 30.0
STOP_SECONDS = 2.0
ASK_SECONDS = 5.0
POLL_SECONDS = 0.02
LOG_TAIL = 2000


class _Decisions(msgspec.Struct):
    decisions: tuple[HistoryEntry, ...]


@dataclass(frozen=True, slots=True)
class ControllerSpec:
    kubeconfig: Path
    settings: Path
    store: Path
    log: Path
    port: int
    program: tuple[str, ...] = (sys.executable, "-c", "from reactor.cli.main import main; main()")
    """This version's `rematch`, unless another one is measured."""


class RunningController:
    """Asks the process over its HTTP API."""

    def __init__(self, url: str, pid: int, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.pid = pid
        self._session = session

    async def overview(self) -> Overview:
        return await self.ask("overview", Overview)

    async def series(self) -> Series:
        return await self.ask("series", Series)

    async def decisions(self, limit: int = 50) -> tuple[HistoryEntry, ...]:
        return (await self.ask(f"decisions?limit={limit}&waits=true", _Decisions)).decisions

    async def synced(self) -> bool:
        async with self._session.get(f"{self.url}/readyz") as response:
            return response.status == 200

    async def metrics(self) -> str:
        """As Prometheus reads them."""
        async with self._session.get(f"{self.url}/metrics") as response:
            return await response.text()

    async def ask(self, path: str, answer: type[T]) -> T:
        """A GET under /api/v1/."""
        async with self._session.get(f"{self.url}/api/v1/{path}") as response:
            return msgspec.json.decode(await response.read(), type=answer)


@asynccontextmanager
async def running_controller(
    spec: ControllerSpec, start_deadline: float = START_DEADLINE
) -> AsyncIterator[RunningController]:
    """Started and synced. It ends with the block, or with this process if that is killed."""
    arguments = ["--kubeconfig", spec.kubeconfig, "--settings", spec.settings, "--store", spec.store]
    with spec.log.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *ends_with_us(),
            *spec.program,
            "run",
            *(str(argument) for argument in arguments),
            *("--port", str(spec.port), "--log-format", "json"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        timeout = aiohttp.ClientTimeout(total=ASK_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            controller = RunningController(f"http://127.0.0.1:{spec.port}", process.pid, session)
            await _ready(controller, process, spec.log, start_deadline)
            yield controller
    finally:
        await _end(process)


async def _ready(
    controller: RunningController, process: asyncio.subprocess.Process, log: Path, deadline: float
) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + deadline
    while loop.time() < end:
        if process.returncode is not None:
            words = await asyncio.to_thread(log.read_text, errors="replace")
            raise ClusterError(f"the controller ended at once: {words[-LOG_TAIL:].strip()}")
        try:
            if await controller.synced():
                return
        except (aiohttp.ClientConnectionError, TimeoutError):  # a large cluster keeps the lab's API server busy
            pass
        await asyncio.sleep(POLL_SECONDS)
    raise ClusterError(f"the controller was not ready within {deadline:g} s; see {log}")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
