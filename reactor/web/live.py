"""The dashboard's view of the running controller. Reads frozen snapshots and the history, changes nothing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from statistics import fmean

import msgspec
from msgspec.structs import replace

from matching.serialization import plan_from_json
from reactor.clock import Clock
from reactor.cluster.records import Node, Pod
from reactor.decision.causes import node_use
from reactor.decision.eligibility import Eligibility, Management
from reactor.execution.cycle_outcome import Outcome
from reactor.record.history_reader import HistoryEntry, HistoryTotals
from reactor.state.snapshot import Snapshot
from reactor.web.chart_samples import ChartSample, ChartSamples
from reactor.web.pod_page import placement_in, placement_now, pod_view
from reactor.web.pod_search import find_pods, found_pods
from reactor.web.query import FindQuery
from reactor.web.readers import Readers
from reactor.web.view import (
    FoundPods,
    Gauge,
    Health,
    NodeView,
    Overview,
    PlacementView,
    PodChip,
    PodView,
    Refusal,
    Series,
    SettingsView,
)
from storage import StorageError

SAMPLE_EVERY = 2.0
LOOK_EVERY = 0.25
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
        self.samples = ChartSamples()

    def cycle_recorded(self, _cycle: str, snapshot: Snapshot, outcome: Outcome) -> None:
        """A rematch gets a sample of its own: a moment later the unhappy pod is replaced and the dip is gone."""
        if outcome.rematch is not None:
            self.samples.add(self._sample(snapshot))

    async def keep_sampling(self) -> None:
        """Add samples for the charts until cancelled."""
        while True:
            if self._state.synced:
                self.samples.add(self._sample(await self._state.snapshot_between_cycles()))
            await self._clock.sleep(SAMPLE_EVERY)

    async def overview(self) -> Overview:
        totals = await self._read_totals()
        eligibility = self._eligibility()
        snapshot, settings = eligibility.snapshot, eligibility.settings
        nodes = sorted(snapshot.cluster.nodes.values(), key=lambda node: node.name)
        pending = [pod for pod in snapshot.cluster.pods.values() if pod.node is None and not pod.finished]
        return Overview(
            title=self._title,
            mode=settings.mode,
            synced=self._state.synced,
            halted=snapshot.moves.halted or None,
            planner=settings.planner.name,
            threshold=settings.happiness.threshold,
            at=snapshot.at,
            cycles=self._state.cycles,
            rematches=totals.rematches,
            moves=totals.moves,
            settings=self._settings_view(),
            problems=tuple(self._health.problems()),
            nodes=tuple(_node_view(node, eligibility) for node in nodes),
            pending=tuple(_chip(pod, eligibility) for pod in sorted(pending, key=lambda pod: pod.key)),
        )

    async def series(self) -> Series:
        return self.samples.series(await self._history.rematch_times(self.samples.since))

    async def decisions(self, limit: int, before: int | None, waits: bool) -> tuple[HistoryEntry, ...]:
        return await self._history.entries(limit, before, waits=waits)

    async def pod(self, namespace: str, name: str) -> PodView | None:
        eligibility = self._eligibility()
        pod = eligibility.snapshot.cluster.pod_named(namespace, name)
        if pod is None:
            return None
        placement = await self._planned(pod)
        if placement is None:
            placement = await asyncio.to_thread(placement_now, pod, eligibility)
        evidence = self._state.evidence(pod.uid, eligibility.snapshot.at)
        history = await self._history.entries(POD_HISTORY, pod=pod.key)
        return pod_view(pod, eligibility, evidence, placement, history)

    async def find_pods(self, wanted: FindQuery) -> FoundPods:
        """A pod that was moved is found by its old name, too: the pod that replaces it."""
        eligibility = self._eligibility()
        found = find_pods(wanted, eligibility)
        if found.pods or wanted.kind not in ("", "Pod"):
            return found
        pods = eligibility.snapshot.cluster.pods
        for uid, old in (await self._history.replacements_of(wanted.name, wanted.namespace)).items():
            if uid in pods:
                note = f"{old} was moved; this is the pod that replaces it"
                return replace(found_pods([pods[uid]], eligibility, 1), note=note)
        return found

    async def _planned(self, pod: Pod) -> PlacementView | None:
        """From the newest plan, if it moves the pod or the pod that this one replaced."""
        row = await self._history.newest_plan()
        if row is None:
            return None
        plan = plan_from_json(msgspec.json.decode(row.document))
        lineage = self._state.cooldowns().lineage.get(pod.uid)
        found = placement_in(plan, pod.uid, row.id, row.at)
        return found or (placement_in(plan, lineage.predecessor, row.id, row.at) if lineage else None)

    async def wait_for_change(self, after: int) -> int:
        while self._version() == after:
            await self._clock.sleep(LOOK_EVERY)
        return self._version()

    def live(self) -> Health:
        return Health(ok=True)

    def ready(self) -> Health:
        """Not before every kind is listed, and not while one may not be read."""
        reasons = sorted(self._health.unready())
        return Health(not reasons, tuple(reasons))

    def _version(self) -> int:
        """Grows with the state, the history and the samples of the charts."""
        return self._state.version + self._history.version + self.samples.version

    def _eligibility(self) -> Eligibility:
        return Eligibility(self._state.snapshot(), self._state.cooldowns(), self._settings.get())

    async def _read_totals(self) -> HistoryTotals:
        """The last known ones while the store does not answer: the other parts of the overview are worth showing."""
        with suppress(StorageError):
            self._totals = await self._history.totals()
        return self._totals

    def _sample(self, snapshot: Snapshot) -> ChartSample:
        level = self._health.service_level()
        management = Management.of(self._settings.get())
        failing = snapshot.happiness
        happiness = [
            failing[pod.uid].probability if pod.uid in failing else 1.0
            for pod in snapshot.cluster.pods.values()
            if pod.node is not None and pod.deleting is None and management.covers(pod)
        ]
        uses = {node.name: node_use(node, snapshot) for node in snapshot.cluster.nodes.values()}
        return ChartSample(
            at=snapshot.at,
            availability=level.availability,
            latency_p95=level.latency_p95,
            happiness_min=min(happiness, default=None),
            happiness_mean=fmean(happiness) if happiness else None,
            cpu={name: use["cpu"] if use else None for name, use in uses.items()},
            memory={name: use["memory"] if use else None for name, use in uses.items()},
        )

    def _settings_view(self) -> SettingsView:
        current, refused = self._settings.source.current, self._settings.source.refused
        errors = refused.problems if refused is not None else ()
        return SettingsView(
            current.digest[:12], current.source, tuple(Refusal(path, message) for path, message in errors)
        )


def _chip(pod: Pod, eligibility: Eligibility) -> PodChip:
    snapshot = eligibility.snapshot
    managed = eligibility.management.covers(pod)
    ineligible = eligibility.why_not(pod) if managed else None
    failing = snapshot.happiness.get(pod.uid)
    probed = any(container.liveness for container in pod.containers)
    return PodChip(
        uid=pod.uid,
        key=pod.key,
        happiness=failing.probability if failing else 1.0 if managed and probed and pod.node else None,
        threshold=failing.threshold.value if failing else eligibility.settings.happiness.threshold,
        happy=failing is None or not failing.unhappy,
        managed=managed,
        ready=pod.ready,
        phase="Terminating" if pod.deleting is not None else pod.phase,
        cpu=snapshot.usage.usage(pod.uid).cpu.fresh,
        fixed="" if ineligible is None else str(ineligible),
    )


def _node_view(node: Node, eligibility: Eligibility) -> NodeView:
    snapshot = eligibility.snapshot
    pods = [pod for pod in snapshot.cluster.pods_on(node.name) if not pod.finished]
    usage = snapshot.usage.node_usage(node.name)
    requested = {axis: sum(pod.requests.get(axis, 0.0) for pod in pods) for axis in ("cpu", "memory")}
    return NodeView(
        name=node.name,
        ready=node.ready,
        unschedulable=node.unschedulable,
        cpu=Gauge(usage.cpu.fresh, node.allocatable.get("cpu", 0.0), "cores", requested["cpu"]),
        memory=Gauge(usage.memory.fresh, node.allocatable.get("memory", 0.0), "bytes", requested["memory"]),
        pods=tuple(_chip(pod, eligibility) for pod in sorted(pods, key=lambda pod: pod.key)),
    )
