"""Needs with the history and the forecasts of pods: means, and peaks that a quiet quarter hour does not show."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matching.problem import Amounts
from reactor.cluster.records import Pod
from reactor.forecasts.pod_forecasts import PodPeaks, cpu_limit, memory_limit
from reactor.history.past_needs import HistoryNeeds
from reactor.planning.problem_pods import Row
from reactor.settings.duration import format_duration
from reactor.signals.workloads import workload_key
from reactor.state.snapshot import MEASURED, Needs, Snapshot

_AXES = len(MEASURED)
_CPU = 0


def with_history(
    rows: Sequence[Row],
    usage: NDArray[np.float64],
    peak: NDArray[np.float64],
    history: HistoryNeeds,
    forecasts: PodPeaks,
) -> NDArray[np.float64]:
    """Usage, peak and mean of the measured axes, and idle CPU; NaN where the history is too short.

    The peak is the forecast where that is sure, else the highest one of the recent, that of the history and the
    forecast; at most the limit, and never below the usage."""
    means, past_peaks, idle = np.full_like(usage, np.nan), np.full_like(usage, np.nan), np.full(len(rows), np.nan)
    if history.past:
        means, past_peaks, idle = history.of([(row[0].key, workload_key(row[0])) for row in rows])
    highest = np.fmax(np.fmax(peak, past_peaks), forecasts.peaks)
    sure = forecasts.sure[:, np.newaxis]
    highest, floor = np.where(sure, forecasts.peaks, highest), np.where(sure, usage, peak)
    for at in np.flatnonzero((highest > floor).any(axis=1)).tolist():
        highest[at] = np.minimum(highest[at], _limits(rows[at][0]))
    highest = np.maximum(highest, floor)
    return np.hstack((usage, highest, means, idle[:, np.newaxis]))


def inherited(pod: Pod, expected: Amounts, history: HistoryNeeds) -> tuple[Amounts, Amounts, Amounts, float | None]:
    """Usage, peak, mean and idle CPU of a pod that has not run yet; `expected` is what is known without history."""
    if not history.past:
        return expected, expected, (), None
    past = history.of([(pod.key, workload_key(pod))])
    mean, peak, idle = past.means[0].tolist(), past.peaks[0].tolist(), float(past.idle[0])
    if math.isnan(mean[_CPU]):
        return expected, expected, (), None
    others = expected[_AXES:]
    highest = [max(most, known) for most, known in zip(peak, expected, strict=False)]
    highest = [
        min(most, max(limit, known)) for most, limit, known in zip(highest, _limits(pod), expected, strict=False)
    ]
    return expected, (*highest, *others), (*mean, *others), None if math.isnan(idle) else idle


def described(snapshot: Snapshot, measured: NDArray[np.float64], forecasts: PodPeaks) -> str:
    """For the plan: which estimates it uses, and how sure they are; empty where no pod has enough history."""
    if snapshot.needs is Needs.REQUESTS or not len(measured):
        return ""
    settings = snapshot.history.settings
    number = int((~np.isnan(measured[:, 2 * _AXES])).sum())
    by_history = ""
    if number:
        window, peak = format_duration(settings.window), "maximum" if settings.peak == "max" else settings.peak.value
        ranked = ", ranks by idle CPU" if settings.rank_by_idle_cpu else ""
        pods = f"{number} of {len(measured)} running pods"
        by_history = f"distances by the mean and peaks by the {peak} of up to {window} of usage, for {pods}{ranked}"
    return "; ".join(part for part in (by_history, forecasts.described(snapshot.forecasts.settings)) if part)


def _limits(pod: Pod) -> tuple[float, float]:
    """Cores and bytes of all containers together; infinite if one has none."""
    cpu, memory = cpu_limit(pod), memory_limit(pod)
    return math.inf if cpu is None else cpu, math.inf if memory is None else memory
