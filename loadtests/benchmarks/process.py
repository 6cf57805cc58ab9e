"""CPU time and memory of another process, read from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


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
