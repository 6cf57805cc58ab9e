"""A program under test as a process of its own, with what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loadtests.benchmarks.process import ProcessUse, process_use
from loadtests.tools.child_processes import ENDS_WITH_US, without_proxies
from reactor.errors import ClusterError

_LOOK_EVERY = 0.1


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_seconds: float
    peak_mib: float


async def run_to_its_end(command: Sequence[str], log: Path, deadline: float) -> Cost:
    """Killed at the deadline, or when this is cancelled."""
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *ENDS_WITH_US,
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=without_proxies(),
        )
    use = ProcessUse(0.0, 0.0, 0.0)
    try:
        async with asyncio.timeout(deadline):
            while process.returncode is None:
                # An ended process has no memory to tell of any more: the last look counts.
                with suppress(OSError, KeyError):
                    use = process_use(process.pid)
                await asyncio.sleep(_LOOK_EVERY)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ClusterError(f"{command[0]} ended with {process.returncode}; see {log}")
    return Cost(use.cpu_seconds, use.peak_mib)
