"""The dashboard's view of the running controller. Reads frozen snapshots and the history, changes nothing."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from matching.plan import Plan, PowerUse
from matching.serialization import plan_from_json
from reactor.background.metrics_collection import ServiceLevel
from reactor.clock import Clock
from reactor.cluster.records import Pod
from reactor.decision.causes import node_uses
from reactor.decision.eligibility import Eligibility, Management
from reactor.execution.cycle_outcome import Outcome
from reactor.record.history_reader import HistoryEntry, HistoryTotals
from reactor.record.landings import Landing
from reactor.record.usage_forecasts import with_forecasts
from reactor.record.usage_reader import UsageDocument
from reactor.settings.model import Settings
from reactor.state.node_power import power_now
from reactor.state.snapshot import Snapshot
from reactor.web.calibration_page import calibration_view
from reactor.web.chart_samples import ChartSample, ChartSamples
from reactor.web.cluster_pages import FrozenCluster
from reactor.web.pod_page import placement_in, placement_now, pod_view
from reactor.web.pod_search import find_pods, found_pods
from reactor.web.query import FindQuery, UsageQuery
from reactor.web.readers import Readers
from reactor.web.view import (
    CalibrationView,
    ClusterPages,
    FoundPods,
    Health,
    Overview,
    PlacementView,
    PodView,
    PowerView,
    Refusal,
    Series,
    SettingsView,
    SteeringView,
)
from storage import StorageError

SAMPLE_EVERY = 2.0
MOST_SAMPLING = 0.05
"""Of the time. In a very large cluster a sample takes long, and so there are fewer."""
LOOK_EVERY = 0.25
PATIENCE = 0.1
"""Seconds that a viewer waits for a cycle that is under way."""
MOST_WAITING = 10
"""Snapshots of rematches for which no sample is taken yet."""
POD_HISTORY = 50
"""Entries on the page of a pod."""


class LiveView:
    """Implements ViewSource and HealthSource."""

    def __init__(self, readers: Readers, clock: Clock, title: str) -> None:
        self._state = readers.state
        self._settings = readers.settings
        self._history = readers.history
        self._health = readers.health
        self._clock = clock
        self._title = title
        self._totals = HistoryTotals()
        self._to_sample: deque[Snapshot] = deque(maxlen=MOST_WAITING)
        self._planned_power: tuple[PowerUse | None, PowerUse | None] = (None, None)
        """Before and after the newest plan."""
        self.samples = ChartSamples()

    def cycle_recorded(self, _cycle: str, snapshot: Snapshot, outcome: Outcome) -> None:
        """A rematch gets a sample of its own: a moment later the unhappy pod is replaced and the dip is gone. The
        sample is taken later: the cycle does not wait for it."""
        if outcome.rematch is not None:
            self._to_sample.append(snapshot)
            self._planned_power = (outcome.rematch.plan.before.power, outcome.rematch.plan.after.power)

    async def keep_sampling(self) -> None:
        """Add samples for the charts until cancelled."""
        while True:
            if self._state.synced:
                self._to_sample.append(await self._state.snapshot_between_cycles())
            began = self._clock.monotonic()
            while self._to_sample:
                snapshot, level = self._to_sample.popleft(), self._health.service_level()
                self.samples.add(await asyncio.to_thread(_sample, snapshot, self._settings.get(), level))
            await self._clock.sleep(max(SAMPLE_EVERY, (self._clock.monotonic() - began) / MOST_SAMPLING))

    async def cluster(self) -> ClusterPages:
        totals = await self._read_totals()
        eligibility = self._eligibility(await self._state.snapshot_between_cycles(PATIENCE))
        return await asyncio.to_thread(FrozenCluster, self._head(eligibility, totals), eligibility)

    def _head(self, eligibility: Eligibility, totals: HistoryTotals) -> Overview:
        snapshot, settings = eligibility.snapshot, eligibility.settings
        return Overview(
            title=self._title,
            mode=settings.mode,
            synced=self._state.synced,
            halted=self._health.hindrance() or "; ".join(map(str, eligibility.cooldowns.brakes.held)) or None,
            planner=settings.planner.name,
            threshold=settings.happiness.threshold,
            at=snapshot.at,
            cycles=self._state.cycles,
            rematches=totals.rematches,
            moves=totals.moves,
            settings=self._settings_view(),
            problems=(*self._health.problems(), *_missing_capacity(eligibility)),
            nodes=(),
            pending=(),
            steering=self._steering(snapshot, settings),
            calibration=self._state.calibration_summary(),
            power=self._power(snapshot, settings),
        )

    def _power(self, snapshot: Snapshot, settings: Settings) -> PowerView | None:
        now = power_now(snapshot.cluster, snapshot.usage, settings.energy)
        if now is None:
            return None
        before, after = self._planned_power
        planned = () if before is None or after is None else (before.watts, after.watts, len(after.idle))
        return PowerView(now.watts, now.idle_nodes, now.idle_watts, now.not_measured, *planned)

    async def series(self) -> Series:
        rematches = await self._history.rematch_times(self.samples.since)
        return await asyncio.to_thread(self.samples.cut().series, rematches)

    async def calibration(self) -> CalibrationView:
        calibration = self._state.calibration
        return calibration_view(calibration.table, calibration.curve, self._state.calibration_summary())

    async def decisions(self, limit: int, before: int | None, waits: bool) -> tuple[HistoryEntry, ...]:
        return await self._history.entries(limit, before, waits=waits)

    async def pod(self, namespace: str, name: str) -> PodView | None:
        eligibility = self._eligibility(await self._state.snapshot_between_cycles(PATIENCE))
        pod = await asyncio.to_thread(eligibility.snapshot.cluster.pod_named, namespace, name)
        if pod is None:
            return None
        placement = await self._planned(pod)
        if placement is None:
            placement = await asyncio.to_thread(placement_now, pod, eligibility)
        evidence = self._state.evidence(pod.uid, eligibility.snapshot.at)
        history = await self._history.of_pod(pod.uid, pod.key, POD_HISTORY)
        return await asyncio.to_thread(pod_view, pod, eligibility, evidence, placement, history)

    async def find_pods(self, wanted: FindQuery) -> FoundPods:
        """A pod that was moved is found by its old name, too: the pod that replaces it."""
        eligibility = self._eligibility(await self._state.snapshot_between_cycles(PATIENCE))
        found = await asyncio.to_thread(find_pods, wanted, eligibility)
        if found.pods or wanted.kind not in ("", "Pod"):
            return found
        pods = eligibility.snapshot.cluster.pods
        for uid, old in (await self._history.replacements_of(wanted.name, wanted.namespace)).items():
            if uid in pods:
                note = f"{old} was moved; this is the pod that replaces it"
                return replace(await asyncio.to_thread(found_pods, [pods[uid]], eligibility, 1), note=note)
        return found

    async def usage(self, wanted: UsageQuery) -> UsageDocument | None:
        now = self._clock.now()
        found = await self._history.usage(wanted.name, wanted.namespace, now, wanted.hours * 3600.0)
        if found is None:
            return None
        usage = (await self._state.snapshot_between_cycles(PATIENCE)).usage
        replicas = {name: pods for name, (_, _, pods) in usage.by_workload().items()}
        return with_forecasts(found, self._state.forecasts, replicas, now)

    async def _planned(self, pod: Pod) -> PlacementView | None:
        """From the newest plan, if it moves the pod or the pod that this one replaced."""
        row = await self._history.newest_plan()
        if row is None:
            return None
        plan = await asyncio.to_thread(_decoded, row.document)
        lineage = self._state.cooldowns().lineage.get(pod.uid)
        found = placement_in(plan, pod.uid, row.id, row.at)
        return found or (placement_in(plan, lineage.predecessor, row.id, row.at) if lineage else None)

    async def wait_for_change(self, after: int) -> int:
        while self._version() == after:
            await self._clock.sleep(LOOK_EVERY)
        return self._version()

    def live(self) -> Health:
        """Not when a loop has stopped: a restart may help."""
        reasons = tuple(self._health.stalled())
        return Health(not reasons, reasons)

    def ready(self) -> Health:
        """Not before every kind is listed, not while one is not watched, and not while a pod should be bound by now."""
        reasons = sorted(self._health.unready())
        return Health(not reasons, tuple(reasons))

    def _version(self) -> int:
        """Grows with the state, the history and the samples of the charts."""
        return self._state.version + self._history.version + self.samples.version

    def _eligibility(self, snapshot: Snapshot) -> Eligibility:
        return Eligibility(snapshot, self._state.cooldowns(), self._settings.get())

    async def _read_totals(self) -> HistoryTotals:
        """The last known ones while the store does not answer: the other parts of the overview are worth showing."""
        with suppress(StorageError):
            self._totals = await self._history.totals()
        return self._totals

    def _steering(self, snapshot: Snapshot, settings: Settings) -> SteeringView:
        status, landed = snapshot.steering, self._state.landings
        return SteeringView(
            mode=settings.placement.steering,
            policy_works=status.policy_works,
            tried=status.tried,
            problem=status.problem_of(settings),
            landed_planned=landed[Landing.PLANNED],
            landed_elsewhere=landed[Landing.ELSEWHERE],
            landed_source=landed[Landing.SOURCE],
        )

    def _settings_view(self) -> SettingsView:
        current, refused = self._settings.source.current, self._settings.source.refused
        errors = refused.problems if refused is not None else ()
        return SettingsView(
            current.digest[:12], current.source, tuple(Refusal(path, message) for path, message in errors)
        )


def _decoded(document: str) -> Plan:
    return plan_from_json(msgspec.json.decode(document))


def _sample(snapshot: Snapshot, settings: Settings, level: ServiceLevel) -> ChartSample:
    """Pods without failed probes are happy, so only the others are looked at one by one."""
    pods = [pod for pod in snapshot.cluster.pods.values() if pod.node is not None and pod.deleting is None]
    excluded = {pods[at].uid for at in Management.of(settings).excluded(pods)}
    running = len(pods) - len(excluded)
    failing = [
        snapshot.happiness[pod.uid].probability
        for pod in pods
        if pod.uid in snapshot.happiness and pod.uid not in excluded
    ]
    nodes = snapshot.cluster.nodes
    uses = dict(zip(nodes, node_uses(list(nodes.values()), snapshot), strict=True))
    return ChartSample(
        at=snapshot.at,
        availability=level.availability,
        latency_p95=level.latency_p95,
        happiness_min=min([*failing, *([1.0] if running > len(failing) else [])], default=None),
        happiness_mean=(sum(failing) + running - len(failing)) / running if running else None,
        cpu={name: use["cpu"] if use else None for name, use in uses.items()},
        memory={name: use["memory"] if use else None for name, use in uses.items()},
    )


def _missing_capacity(eligibility: Eligibility) -> tuple[str, ...]:
    shortage = eligibility.cooldowns.shortage
    return () if shortage is None else (f"the cluster is full: {shortage.text}",)
