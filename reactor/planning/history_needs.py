"""Needs with the history of pods and workloads: means, and peaks that are not forgotten after a quiet quarter hour."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matching.problem import Amounts
from reactor.cluster.records import Pod
from reactor.history.past_needs import HistoryNeeds
from reactor.planning.problem_pods import Row
from reactor.settings.duration import format_duration
from reactor.settings.model import History
from reactor.signals.workloads import workload_key
from reactor.state.snapshot import MEASURED

_AXES = len(MEASURED)
_CPU = 0


def with_history(
    rows: Sequence[Row], usage: NDArray[np.float64], peak: NDArray[np.float64], history: HistoryNeeds
) -> NDArray[np.float64]:
    """Usage, peak and mean of the measured axes, and idle CPU. The peak is the higher one of the recent and that of the
    history, at most the CPU limit, and never below the usage. NaN where the history is too short."""
    if not history.past:
        return np.hstack((usage, peak, np.full((len(rows), _AXES + 1), np.nan)))
    past = history.of([(row[0].key, workload_key(row[0])) for row in rows])
    highest = np.fmax(peak, past.peaks)
    raised = np.flatnonzero(highest[:, _CPU] > peak[:, _CPU])
    limits = np.array([_cpu_limit(rows[at][0]) for at in raised.tolist()], np.float64)
    highest[raised, _CPU] = np.maximum(np.minimum(highest[raised, _CPU], limits), peak[raised, _CPU])
    return np.hstack((usage, highest, past.means, past.idle[:, np.newaxis]))


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
    highest[_CPU] = min(highest[_CPU], max(_cpu_limit(pod), expected[_CPU]))
    return expected, (*highest, *others), (*mean, *others), None if math.isnan(idle) else idle


def described(settings: History, measured: NDArray[np.float64]) -> str:
    """For the plan; empty where no pod has enough history."""
    number = int((~np.isnan(measured[:, 2 * _AXES])).sum()) if len(measured) else 0
    if not number:
        return ""
    window, peak = format_duration(settings.window), "maximum" if settings.peak == "max" else settings.peak.value
    ranked = ", ranks by idle CPU" if settings.rank_by_idle_cpu else ""
    pods = f"{number} of {len(measured)} running pods"
    return f"distances by the mean and peaks by the {peak} of up to {window} of usage, for {pods}{ranked}"


def _cpu_limit(pod: Pod) -> float:
    """Of all containers together; infinite if one has none."""
    limits = [each.cpu_limit for each in pod.containers]
    return math.inf if not limits or None in limits else sum(limit for limit in limits if limit is not None)
