"""The Prometheus metrics of the controller: one registry, every name is present from the start."""

from __future__ import annotations

from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from reactor.cluster.kinds import Kind
from reactor.cluster.writes import Binding, Eviction
from reactor.decision.decide import Trigger
from reactor.decision.reasons import Reason
from reactor.state.moves import ENDED

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10)
_SLOW = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300)


class Instruments:
    """All metrics of the controller. To add one, add it here and set it where it is measured."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._cluster()
        self._decisions()
        self._moves()
        self._surroundings()

    def _cluster(self) -> None:
        registry = self.registry
        self.synced = Gauge("rematch_synced", "1 once every watched kind was listed.", registry=registry)
        self.objects = Gauge("rematch_objects", "Objects in the mirror.", ["kind"], registry=registry)
        self.watch_failures = Counter(
            "rematch_watch_failures", "Failed list or watch calls.", ["kind"], registry=registry
        )
        self.malformed = Counter(
            "rematch_malformed_objects",
            "Objects that could not be read and were left out.",
            ["kind"],
            registry=registry,
        )
        for kind in Kind:
            self.watch_failures.labels(kind)
            self.malformed.labels(kind)
        self.unhappy = Gauge("rematch_pods_unhappy", "Managed pods below their threshold.", registry=registry)
        self.happiness = Gauge(
            "rematch_pod_happiness_ratio",
            "Probability of being happy, for pods with failed probes.",
            ["namespace", "pod"],
            registry=registry,
        )

    def _decisions(self) -> None:
        registry = self.registry
        self.cycles = Counter("rematch_cycles", "Cycles, by what triggered them.", ["trigger"], registry=registry)
        for trigger in Trigger:
            self.cycles.labels(trigger)
        self.stage_seconds = Histogram(
            "rematch_cycle_stage_duration_seconds",
            "Time spent in one stage of a cycle.",
            ["stage"],
            buckets=_FAST,
            registry=registry,
        )
        for stage in ("snapshot", "decide", "plan", "execute"):
            self.stage_seconds.labels(stage)
        self.waits = Counter("rematch_waits", "Decisions to wait, by reason.", ["reason"], registry=registry)
        for reason in Reason:
            self.waits.labels(reason)
        self.plans = Counter("rematch_plans", "Plans made.", ["planner"], registry=registry)
        self.blocking_pairs = Gauge(
            "rematch_plan_blocking_pairs", "Blocking pairs the last plan leaves.", registry=registry
        )
        self.planned_moves = Gauge("rematch_plan_moves", "Moves in the last plan.", registry=registry)

    def _moves(self) -> None:
        registry = self.registry
        self.moves = Counter("rematch_moves", "Moves ended, by outcome.", ["outcome"], registry=registry)
        for stage in sorted(ENDED):
            self.moves.labels(stage)
        self.moves_in_flight = Gauge("rematch_moves_in_flight", "Moves under way.", registry=registry)
        self.move_seconds = Histogram(
            "rematch_move_duration_seconds",
            "Eviction to Ready replacement.",
            buckets=_SLOW,
            registry=registry,
        )
        self.evictions = Counter("rematch_evictions", "Eviction requests, by answer.", ["answer"], registry=registry)
        self.bindings = Counter("rematch_bindings", "Binding requests, by answer.", ["answer"], registry=registry)
        for eviction in Eviction:
            self.evictions.labels(eviction)
        for binding in Binding:
            self.bindings.labels(binding)
        self.halted = Gauge("rematch_halted", "1 while no further move is started.", registry=registry)
        self.reaction_seconds = Histogram(
            "rematch_reaction_duration_seconds",
            "Signal that crossed the threshold to the eviction request.",
            buckets=_FAST,
            registry=registry,
        )

    def _surroundings(self) -> None:
        registry = self.registry
        Info("rematch_build", "Version of the controller.", registry=registry).info({"version": version("rematch")})
        self.acting = Gauge("rematch_acting", "1 in mode act, 0 in mode observe.", registry=registry)
        self.revisions = Counter(
            "rematch_settings_revisions", "Settings revisions seen.", ["result"], registry=registry
        )
        for result in ("accepted", "refused"):
            self.revisions.labels(result)
        self.source_up = Gauge(
            "rematch_metrics_source_up", "1 when the last round succeeded.", ["source"], registry=registry
        )
        self.source_errors = Counter(
            "rematch_metrics_source_errors", "Rounds or queries that failed.", ["source"], registry=registry
        )
        self.storage_ok = Gauge(
            "rematch_storage_ok", "1 when the last write to the store succeeded.", registry=registry
        )
        self.events_lost = Counter(
            "rematch_events_not_written", "Events that the API did not accept.", registry=registry
        )
