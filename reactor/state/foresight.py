"""Which nodes will be asked for more CPU than they have, and how often that was right.

Two forecasts: the calibrated one of the usage history, and the trend of the last minutes, which needs no history.
Each forecast that a node will be full is compared with what came; wrong ones lower the trust.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reactor.cluster.records import Node
from reactor.cluster.view import ClusterView
from reactor.forecasts.forecasts import Forecasts, Trust
from reactor.forecasts.pod_forecasts import OLD
from reactor.history.levels import Axis
from reactor.signals.usage import UsageHistory

WINDOW = 240.0
"""Seconds of which the trend is taken."""
AHEAD = 120.0
"""Seconds that it is continued."""
FEWEST = 6
EXPLAINED = 0.7
"""Share of the variance that a straight line has to explain."""
FULL = 1.0
WRONG_BELOW = 0.9
"""A node that stays below this share of its CPU was forecast wrongly."""
PRIOR_RIGHT, PRIOR_WRONG = 2.0, 1.0
KEPT = 0.95
"""Of what was counted before, with each forecast that ends."""


@dataclass(frozen=True, slots=True)
class NodeOutlook:
    """CPU as shares of what pods can have of the node."""

    now: float
    expected: float
    seconds: float
    """Until then."""
    by: str

    @property
    def full(self) -> bool:
        return self.expected >= FULL

    @property
    def growth(self) -> float:
        """At most double: a trend does not go on for ever."""
        return min(max(self.expected / self.now, 1.0), 2.0) if self.now > 0 else 1.0

    def __str__(self) -> str:
        within = f"within {self.seconds / 60:.0f} min"
        return f"{self.now:.0%} of its CPU in use, {self.expected:.0%} expected {within} by {self.by}"


@dataclass(frozen=True, slots=True)
class _Forecast:
    made: float
    due: float
    growth: float
    pods: Mapping[str, float]
    """CPU share by UID, of the pods that were there."""


@dataclass(slots=True)
class Foresight:
    right: float = 0.0
    wrong: float = 0.0
    counted: dict[str, int] = field(default_factory=lambda: {"right": 0, "wrong": 0})
    """Since the process started."""
    _open: dict[str, _Forecast] = field(default_factory=dict)
    """By node."""

    @property
    def trust(self) -> float:
        """The probability that the next forecast of a full node is right."""
        return (PRIOR_RIGHT + self.right) / (PRIOR_RIGHT + PRIOR_WRONG + self.right + self.wrong)

    def look(self, cluster: ClusterView, usage: UsageHistory, forecasts: Forecasts) -> dict[str, NodeOutlook]:
        """Of nodes whose load is expected to rise. Forecasts that are due are judged."""
        found: dict[str, NodeOutlook] = {}
        for name, node in cluster.nodes.items():
            times, loads = _loads(node, usage)
            self._judge(name, times, loads, cluster)
            outlooks = [_by_trend(times, loads, cluster.at), _by_history(node, loads, forecasts, cluster.at)]
            known = [each for each in outlooks if each is not None]
            if known:
                found[name] = max(known, key=lambda each: each.expected)
                if found[name].full and name not in self._open:
                    self._open[name] = _forecast(node, found[name], cluster, usage)
        self._open = {name: each for name, each in self._open.items() if name in cluster.nodes}
        return found

    def _judge(self, name: str, times: NDArray[np.float64], loads: NDArray[np.float64], cluster: ClusterView) -> None:
        """What pods that left since would use counts: they may have left because of the forecast."""
        said = self._open.get(name)
        if said is None or cluster.at < said.due:
            return
        del self._open[name]
        since = loads[times >= said.made]
        if not np.isfinite(since).any():
            return
        stayed = {pod.uid for pod in cluster.pods_on(name)}
        gone = said.growth * sum(share for uid, share in said.pods.items() if uid not in stayed)
        result = "right" if float(np.nanmax(since)) + gone >= WRONG_BELOW else "wrong"
        self.counted[result] += 1
        self.right, self.wrong = KEPT * self.right, KEPT * self.wrong
        if result == "right":
            self.right += 1
        else:
            self.wrong += 1


def _loads(node: Node, usage: UsageHistory) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    times, used = usage.node_history(node.name)
    cores = node.allocatable.get("cpu", 0.0)
    if cores <= 0:
        return times, np.full(len(times), np.nan)
    return times, ((used[0] - node.kept_back("cpu")) / cores).clip(min=0.0).astype(np.float64)


def _by_trend(times: NDArray[np.float64], loads: NDArray[np.float64], now: float) -> NodeOutlook | None:
    here = np.isfinite(loads) & (times >= now - WINDOW)
    at, values = times[here], loads[here]
    if len(values) < FEWEST:
        return None
    at = at - at.mean()
    slope = float((at * (values - values.mean())).sum() / (at * at).sum())
    rest = values - values.mean() - slope * at
    variance = float(((values - values.mean()) ** 2).sum())
    if slope <= 0 or variance <= 0 or 1 - float((rest**2).sum()) / variance < EXPLAINED:
        return None
    last = float(values[-1])
    return NodeOutlook(last, last + slope * AHEAD, AHEAD, "the trend of the last minutes")


def _by_history(node: Node, loads: NDArray[np.float64], forecasts: Forecasts, now: float) -> NodeOutlook | None:
    """The peak within a quarter of an hour: a pod that moves later has time to."""
    found = forecasts.nodes.of(node.name, Axis.CPU, 900.0)
    cores, known = node.allocatable.get("cpu", 0.0), loads[np.isfinite(loads)]
    if found is None or found.trust is not Trust.CALIBRATED or now - forecasts.at > OLD or cores <= 0 or not len(known):
        return None
    last = float(known[-1])
    expected = found.peak / cores
    return NodeOutlook(last, expected, 900.0, "its calibrated forecast") if expected > last else None


def _forecast(node: Node, outlook: NodeOutlook, cluster: ClusterView, usage: UsageHistory) -> _Forecast:
    pods = {pod.uid: usage.newest(pod.uid, cluster.at).cpu.fresh or 0.0 for pod in cluster.pods_on(node.name)}
    shares = {uid: cores / node.allocatable["cpu"] for uid, cores in pods.items()}
    return _Forecast(cluster.at, cluster.at + outlook.seconds, outlook.growth, shares)
