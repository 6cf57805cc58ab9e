"""Measures how long a process that is ready to run waits for a CPU, a hundred times a second."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import fmean
from typing import Self

from reactor.errors import RematchError

PAUSE = 0.01
_STOP_SECONDS = 5.0


class CpuDelayMonitor:
    """Has the same priority as the load tool, so what it waits, that waits."""

    def __init__(self, lines: asyncio.StreamReader) -> None:
        self._delays: list[float] = []
        self._reading = asyncio.create_task(self._read(lines))

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[Self]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", __name__, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        cpu_delay = cls(process.stdout)
        try:
            yield cpu_delay
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await cpu_delay.close()
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()

    def take(self) -> float | None:
        """Mean delay in milliseconds since it was last asked; None without a measurement."""
        if self._reading.done():
            raise RematchError("the process that measures CPU delay has ended") from self._reading.exception()
        delays, self._delays = self._delays, []
        return fmean(delays) if delays else None

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            self._delays.append(float(line))


def main() -> None:
    """The kernel's own slack (50 us) is part of the delay; prints the mean of every ten."""
    delays: list[float] = []
    while True:
        due = time.perf_counter() + PAUSE
        time.sleep(PAUSE)
        delays.append((time.perf_counter() - due) * 1000)
        if len(delays) == 10:
            print(f"{fmean(delays):.3f}", flush=True)
            delays.clear()


if __name__ == "__main__":
    main()
