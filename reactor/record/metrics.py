"""The Prometheus metrics of the controller: one registry, every name is present from the start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.metadata import version
from math import nan

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from reactor.cluster.kinds import Kind
from reactor.cluster.watch import WatchState
from reactor.cluster.writes import Binding, Eviction
from reactor.decision.decide import Trigger
from reactor.decision.wait_reasons import Reason
from reactor.execution.acting import Acting
from reactor.record.landings import Landing
from reactor.record.move_checks import CheckedMoves
from reactor.record.power_metrics import PowerMetrics
from reactor.record.workload_metrics import WorkloadMetrics
from reactor.settings.model import Mode, Settings
from reactor.signals.latency import LatencySignals
from reactor.signals.latency_messages import Refusal
from reactor.state.calibration import Calibration, PredictedFailures
from reactor.state.live_state import State
from reactor.state.moves import ENDED
from reactor.state.snapshot import MEASURED

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10)
CURVE_PARAMETERS = ("floor", "ceiling", "midpoint", "width")
_SLOW = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300)


class Instruments:
    """All metrics of the controller. To add one, add it here and set it where it is measured."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._cluster()
        self._decisions()
        self._moves()
        self._process()

    def watch_acting(self, acting: Acting, settings: Callable[[], Settings]) -> None:
        """Read when they are scraped: a Lease is lost by the passing of time."""
        self.acting.set_function(lambda: float(settings().mode is Mode.ACT))
        self.leader.set_function(lambda: float(acting.leadership.leads))
        self.paused.set_function(lambda: float(acting.paused is not None))
        self.journal_ok.set_function(lambda: float(not acting.journal_problem))

    def watch_calibration(self, calibration: Calibration, moves: Callable[[], CheckedMoves | None]) -> None:
        """Read when they are scraped. NaN before anything was counted."""
        for name in CURVE_PARAMETERS:
            self.curve.labels(name).set_function(partial(_curve_parameter, calibration, name))
        self.curve_probes.set_function(lambda: found.probes if (found := calibration.predicted_failures()) else 0.0)
        for share in ("expected", "observed"):
            self.probe_failures.labels(share).set_function(partial(_share, calibration.predicted_failures, share))
            self.move_failures.labels(share).set_function(partial(_share, moves, share))

    def watch_forecasts(self, state: State, settings: Callable[[], Settings]) -> None:
        """Read when they are scraped."""
        self.workloads = WorkloadMetrics(state, settings)
        self.registry.register(self.workloads)
        self.registry.register(_NodeForecasts(state))
        self.forecast_trust.set_function(lambda: state.foresight.trust)

    def watch_power(self, state: State, settings: Callable[[], Settings]) -> None:
        """Read when it is scraped."""
        self.registry.register(PowerMetrics(state, settings))

    def watch_latency(self, latency: LatencySignals) -> None:
        """Read when they are scraped."""
        self.latency_measured.set_function(latency.fresh)
        self.latency_round.set_function(lambda: latency.rounds.number)

    def _cluster(self) -> None:
        self.synced = self._gauge("rematch_synced", "1 once every watched kind was listed.")
        self.objects = self._gauge("rematch_objects", "Objects in the mirror.", "kind")
        self.watch_failures = self._counter("rematch_watch_failures", "Failed list or watch calls.", "kind", Kind)
        self.watch_age = self._gauge("rematch_watch_age_seconds", "Since the API server last answered a watch.", "kind")
        self.malformed = self._counter(
            "rematch_malformed_objects", "Objects that could not be read and were left out.", "kind", Kind
        )
        self.latency_messages = self._counter(
            "rematch_latency_messages", "Messages of latency meters, by what became of them.", "result",
            ("accepted", *Refusal),
        )  # fmt: skip
        self.latency_measured = self._gauge("rematch_latency_measured_pods", "Pods with a fresh round trip.")
        self.latency_round = self._gauge("rematch_latency_round", "The current round of the planner latency.")
        self.pending = self._gauge("rematch_pods_pending", "Pods with our schedulerName that have no node.")
        self.late = self._gauge("rematch_pods_late", "Those of them that may fit somewhere and wait too long.")
        self.unhappy = self._gauge("rematch_pods_unhappy", "Managed pods below their threshold.")
        self.happiness = self._gauge(
            "rematch_pod_happiness_ratio",
            "Probability of being happy, for pods with failed probes.",
            "namespace",
            "pod",
        )

    def _decisions(self) -> None:
        self.cycles = self._counter("rematch_cycles", "Cycles, by what triggered them.", "trigger", Trigger)
        self.last_cycle = self._gauge("rematch_last_cycle_timestamp_seconds", "When the last cycle began that ended.")
        self.stage_seconds = Histogram(
            "rematch_cycle_stage_duration_seconds",
            "Time spent in one stage of a cycle.",
            ["stage"],
            buckets=_FAST,
            registry=self.registry,
        )
        for stage in ("snapshot", "decide", "plan", "execute", "place"):
            self.stage_seconds.labels(stage)
        self.failures = self._counter(
            "rematch_cycle_failures",
            "Errors in a stage of a cycle, in binding or in a background task. Each is tried again.",
            "stage",
            ("snapshot", "decide", "plan", "execute", "place", "cycle", "binding"),
        )
        self.waits = self._counter("rematch_waits", "Decisions to wait, by reason.", "reason", Reason)
        self.suspected_nodes = self._counter(
            "rematch_suspected_nodes", "Rematches because pods fail on a node that is not loaded, by node.", "node"
        )
        self.plans = self._counter("rematch_plans", "Plans made.", "planner")
        self.blocking_pairs = self._gauge("rematch_plan_blocking_pairs", "Blocking pairs the last plan leaves.")
        self.planned_moves = self._gauge("rematch_plan_moves", "Moves in the last plan.")
        self.curve = self._gauge(
            "rematch_failure_curve", "The fitted curve of probe failures by node load.", "parameter"
        )
        self.curve_probes = self._gauge("rematch_failure_curve_probes", "Counted probes, decayed over weeks.")
        self.probe_failures = self._gauge(
            "rematch_probe_failure_ratio", "Share of these that the curve expected to fail, and that failed.", "share"
        )
        self.move_failures = self._gauge(
            "rematch_moved_pod_failure_ratio", "The same of pods on the nodes that they were moved to.", "share"
        )
        self.forecast_trust = self._gauge(
            "rematch_node_forecast_trust",
            "The share of the forecasts of full nodes that is expected to be right; below 0.5 nobody moves.",
        )
        self.missing_capacity = self._gauge(
            "rematch_missing_capacity",
            "What unhappy pods lack that no placement can give: cores, bytes. 0 when nothing is missing.",
            "resource",
        )
        for resource in MEASURED:
            self.missing_capacity.labels(resource)

    def _moves(self) -> None:
        self.moves = self._counter("rematch_moves", "Moves ended, by outcome.", "outcome", sorted(ENDED))
        self.moves_in_flight = self._gauge("rematch_moves_in_flight", "Moves under way.")
        self.moves_refused = self._gauge(
            "rematch_moves_refused", "Those of them that cannot go on or back: the API server refuses a call."
        )
        self.move_seconds = Histogram(
            "rematch_move_duration_seconds", "Eviction to Ready replacement.", buckets=_SLOW, registry=self.registry
        )
        self.evictions = self._counter("rematch_evictions", "Eviction requests, by answer.", "answer", Eviction)
        self.bindings = self._counter("rematch_bindings", "Binding requests, by answer.", "answer", Binding)
        self.steering_works = self._gauge(
            "rematch_steering_policy_works", "1 when a canary pod got the stamp of the policy rematch-hints."
        )
        self.landings = self._counter(
            "rematch_landings", "Replacements of moved pods, by where they landed.", "result", Landing
        )
        self.halted = self._gauge("rematch_halted", "1 while a brake holds moves in the cluster or in a namespace.")
        self.brakes = self._gauge(
            "rematch_brake", "1 while it holds moves there; namespace * is the whole cluster.", "namespace", "cause"
        )
        self.effects = self._counter(
            "rematch_move_effects",
            "Moves of unhappy pods that were judged.",
            "effect",
            ("helped", "did not help"),
        )
        self.reaction_seconds = Histogram(
            "rematch_reaction_duration_seconds",
            "Signal that crossed the threshold to the eviction request.",
            buckets=_FAST,
            registry=self.registry,
        )

    def _process(self) -> None:
        build = Info("rematch_build", "Version of the controller.", registry=self.registry)
        build.info({"version": version("rematch")})
        self.acting = self._gauge("rematch_acting", "1 when the settings say mode act, also in a pause.")
        self.leader = self._gauge("rematch_leader", "1 when this process holds the Lease.")
        self.paused = self._gauge("rematch_paused", "1 while `rematch pause` stops evictions.")
        self.journal_ok = self._gauge("rematch_journal_ok", "1 when the leader's journal is loaded and can be written.")
        self.settings_restored = self._gauge(
            "rematch_settings_restored", "1 while the settings of the last run are in force because newer are refused."
        )
        self.revisions = self._counter(
            "rematch_settings_revisions", "Settings revisions seen.", "result", ("accepted", "refused")
        )
        self.settings_refused = self._gauge(
            "rematch_settings_refused", "1 while the newest revision of the settings is refused."
        )
        self.source_up = self._gauge("rematch_metrics_source_up", "1 when the last round succeeded.", "source")
        self.source_errors = self._counter("rematch_metrics_source_errors", "Rounds or queries that failed.", "source")
        self.storage_ok = self._gauge("rematch_storage_ok", "1 when the last write to the store succeeded.")
        self.events_lost = Counter(
            "rematch_events_not_written", "Events that the API did not accept.", registry=self.registry
        )

    def read_when_scraped(
        self,
        watches: Callable[[], Iterable[WatchState]],
        refused: Callable[[], bool],
        pending: Callable[[], int],
        late: Callable[[], int],
    ) -> None:
        """What changes by the passing of time, too, or belongs to others."""
        self.pending.set_function(pending)
        self.late.set_function(late)
        for state in watches():
            self.watch_age.labels(state.kind).set_function(partial(_age, watches, state.kind))
        self.settings_refused.set_function(lambda: float(refused()))

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _counter(self, name: str, text: str, label: str, values: Iterable[str] = ()) -> Counter:
        """The known values of the label are present from the start."""
        counter = Counter(name, text, [label], registry=self.registry)
        for value in values:
            counter.labels(value)
        return counter


class _NodeForecasts(Collector):
    """Counted by the state, read when they are scraped."""

    def __init__(self, state: State) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        text = "Forecasts that a node will be full, since the start, by how they ended."
        family = CounterMetricFamily("rematch_node_forecasts", text, labels=["result"])
        for result, number in self._state.foresight.counted.items():
            family.add_metric([result], float(number))
        yield family


def _curve_parameter(calibration: Calibration, name: str) -> float:
    value: float = getattr(calibration.curve, name)
    return value


def _share(found: Callable[[], PredictedFailures | CheckedMoves | None], share: str) -> float:
    shares = found()
    return nan if shares is None else {"expected": shares.expected, "observed": shares.observed}[share]


def _age(watches: Callable[[], Iterable[WatchState]], kind: Kind) -> float:
    return next(state.age for state in watches() if state.kind is kind)
