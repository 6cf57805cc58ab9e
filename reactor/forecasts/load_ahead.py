"""The load of autoscaled workloads one minute ahead, from samples of the last hours that only memory has.

The usage history has steps of five minutes: too long for an autoscaler, which asks every 15 seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np

from predictors.recurring import Recurring

AHEAD = 60.0
"""Seconds; a new replica is Ready within about as much."""
STEP = 5.0
KEPT = 2 * 3600.0
SILENT = 600.0
"""Seconds without a sample after which a workload is forgotten."""
_BRIDGED = 6
"""Steps between two samples that are filled with the earlier one: sources are read less often than once per step."""


def _samples() -> deque[float]:
    return deque(maxlen=int(KEPT / STEP))


@dataclass(slots=True)
class _Workload:
    seen: int
    """The number of the step of the newest sample."""
    samples: deque[float] = field(default_factory=_samples)


class LoadAhead:
    def __init__(self) -> None:
        self._workloads: dict[str, _Workload] = {}
        self._recurring = Recurring()

    def add(self, at: float, loads: Mapping[str, float]) -> None:
        """Cores by workload, of those that are measured now."""
        step = int(at // STEP)
        for name, cores in loads.items():
            self._add(name, step, cores)
        silent = [name for name, each in self._workloads.items() if (step - each.seen) * STEP > SILENT]
        for name in silent:
            del self._workloads[name]

    def most(self, name: str, now: float) -> float | None:
        """Cores within the next minute: what the past says, at least what was measured last. None where nothing was
        measured lately."""
        found = self._workloads.get(name)
        if found is None or int(now // STEP) - found.seen > _BRIDGED:
            return None
        latest = found.samples[-1]
        expected = self._recurring.highest(np.array(found.samples), int(AHEAD / STEP))
        return latest if np.isnan(expected) else max(latest, expected)

    def _add(self, name: str, step: int, cores: float) -> None:
        known = self._workloads.setdefault(name, _Workload(step))
        missing = step - known.seen
        if not known.samples:
            known.samples.append(cores)
        elif missing <= 0:
            known.samples[-1] = cores
        else:
            between = known.samples[-1] if missing <= _BRIDGED else float("nan")
            known.samples.extend([*repeat(between, missing - 1), cores])
        known.seen = max(known.seen, step)
