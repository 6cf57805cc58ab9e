"""CPU time and memory of a process, read from /proc."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loadtests.tools.processes import ENDS_WITH_US, without_proxies
from reactor.errors import ClusterError

_TICKS = os.sysconf("SC_CLK_TCK")


_LOOK_EVERY = 0.1


@dataclass(frozen=True, slots=True)
class ProcessUse:
    cpu_seconds: float
    resident_mib: float
    peak_mib: float


def process_use(pid: int) -> ProcessUse:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return ProcessUse(
        cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS,
        resident_mib=_mib(status["VmRSS"]),
        peak_mib=_mib(status["VmHWM"]),
    )


def _mib(text: str) -> float:
    return int(text.split()[0]) / 1024


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
