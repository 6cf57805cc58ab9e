"""One frozen view of everything a decision may read, taken once per cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from matching.failure_curve import FailureCurve
from matching.problem import Latency
from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.forecasts.pod_forecasts import ForecastNeeds
from reactor.history.past_needs import HistoryNeeds
from reactor.signals.probe_counts import RecentProbes
from reactor.signals.sources import SourceReading
from reactor.signals.usage import UsageView
from reactor.state.foresight import NodeOutlook
from reactor.state.happiness import PodHappiness
from reactor.state.load_changes import LoadChange
from reactor.state.moves import ActiveMoves
from reactor.state.steering import SteeringStatus

MEASURED = ("cpu", "memory")
"""The axes that are measured; all others are known by requests only."""


class Needs(StrEnum):
    """Where a pod's needs come from: measurements, or its requests (a file without metrics, or by option)."""

    METRICS = "metrics"
    REQUESTS = "requests"


@dataclass(frozen=True, slots=True)
class Snapshot:
    at: float
    cluster: ClusterView
    usage: UsageView
    happiness: Mapping[str, PodHappiness]
    """By pod UID. Only pods with failed probes can be unhappy, so only they are here."""
    moves: ActiveMoves
    needs: Needs = Needs.METRICS
    steering: SteeringStatus = field(default_factory=SteeringStatus)
    events_authentic: bool = False
    """A policy of the API server lets only kubelets write Events about probes."""
    failure_curve: FailureCurve = field(default_factory=FailureCurve)
    """How likely probes fail by the load of the node, as recorded here; a prior before there are records enough."""
    startup_seconds: Mapping[str, float] = field(default_factory=dict)
    """From the binding to Ready, measured, by `workload_key`; only workloads that were seen starting."""

    recent_probes: Mapping[str, tuple[RecentProbes, ...]] = field(default_factory=dict)
    """By pod UID, one for each container; only of unhappy pods."""
    load_changes: Mapping[str, LoadChange] = field(default_factory=dict)
    """By node; only nodes with unhappy pods."""

    history: HistoryNeeds = field(default_factory=HistoryNeeds)
    """What pods and workloads needed in the past."""
    sources: Mapping[str, SourceReading] = field(default_factory=dict)
    """By axis: users' own metrics, only fresh ones."""

    latency: Latency | None = None
    """Measured round trips and the round of the planner `latency`; None where no meter is listened to."""

    forecasts: ForecastNeeds = field(default_factory=ForecastNeeds)
    """What pods, workloads and nodes will need."""

    outlooks: Mapping[str, NodeOutlook] = field(default_factory=dict)
    """By node; nodes whose load is expected to rise. Empty unless the settings say `trigger: predictive`."""
    foresight_trust: float = 0.0
    """The share of forecasts of full nodes that are right."""

    def unhappy_pods(self) -> list[Pod]:
        pods = (self.cluster.pods.get(uid) for uid, happiness in self.happiness.items() if happiness.unhappy)
        return sorted((pod for pod in pods if pod is not None and pod.deleting is None), key=lambda pod: pod.key)

    def happiness_rank(self, pod: Pod) -> tuple[bool, float]:
        """Sorts the unhappiest pods first."""
        failing = self.happiness.get(pod.uid)
        return (True, 1.0) if failing is None else (not failing.unhappy, failing.probability)
