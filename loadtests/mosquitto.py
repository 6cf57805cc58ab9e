"""A Mosquitto of this run alone, on an address and port of its choice."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from loadtests.tools.catalogue import ToolMissing
from loadtests.tools.processes import ends_with_us

_START_SECONDS = 10.0
_POLL_SECONDS = 0.02
ANYBODY = ("allow_anonymous true",)


def find_mosquitto() -> Path:
    found = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        raise ToolMissing("Mosquitto is not here: apt-get install --no-install-recommends mosquitto")
    return Path(found)


class Mosquitto:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def pause(self) -> None:
        """It keeps its connections and says nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)


@asynccontextmanager
async def running_mosquitto(
    folder: Path, port: int, lines: tuple[str, ...] = ANYBODY, host: str = "127.0.0.1"
) -> AsyncIterator[Mosquitto]:
    """Listening; `lines` are added to its configuration."""
    config = folder / "mosquitto.conf"
    own = ("user root",) if os.geteuid() == 0 else ()  # else it may not read the folder
    config.write_text("\n".join((f"listener {port} {host}", "persistence false", *own, *lines)))
    with (folder / "mosquitto.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *ends_with_us(), str(find_mosquitto()), "-c", str(config), stdout=log, stderr=log
        )
    try:
        async with asyncio.timeout(_START_SECONDS):
            while not await _listens(host, port):
                await asyncio.sleep(_POLL_SECONDS)
        yield Mosquitto(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _listens(host: str, port: int) -> bool:
    with suppress(OSError):
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return True
    return False
