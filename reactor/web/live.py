"""The dashboard's answers from the live controller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from statistics import fmean

import msgspec

from reactor.app import Controller
from reactor.cluster.records import Node, Pod
from reactor.decision.causes import node_use
from reactor.decision.managed import Management
from reactor.execution.outcome import Outcome
from reactor.planning.problems import why_fixed
from reactor.settings.model import Settings
from reactor.state.snapshot import Snapshot
from reactor.web.pod_page import Facts, Origin, placement_in, placement_now, pod_view
from reactor.web.timeline import Sample, Timeline
from reactor.web.view import (
    DecisionView,
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

SAMPLE_EVERY = 2.0
LOOK_EVERY = 0.25


class LiveView:
    """Implements ViewSource and HealthSource; reads frozen snapshots only."""

    def __init__(self, controller: Controller, title: str) -> None:
        self._controller = controller
        self._title = title
        self.timeline = Timeline()
        controller.stages.recorder.listen(self._take)
        controller.settings.listen(self.timeline.settings)

    def _take(self, cycle: str, snapshot: Snapshot, outcome: Outcome) -> None:
        """A rematch gets a sample of its own: a moment later the unhappy pod is replaced and the dip is gone."""
        self.timeline.outcome(cycle, snapshot, outcome)
        if outcome.rematch is not None:
            self.timeline.sample(self._sample(snapshot))

    async def keep_sampling(self) -> None:
        """The charts' samples, until cancelled."""
        while True:
            if self._controller.state.synced:
                await self._controller.work_queue.yield_to_cycle()
                self.timeline.sample(self._sample(self._snapshot()))
            await self._controller.clock.sleep(SAMPLE_EVERY)

    async def overview(self) -> Overview:
        controller = self._controller
        snapshot, settings = self._snapshot(), controller.settings.get()
        chips = _Chips(snapshot, settings)
        nodes = sorted(snapshot.cluster.nodes.values(), key=lambda node: node.name)
        pending = [pod for pod in snapshot.cluster.pods.values() if pod.node is None and not pod.finished]
        return Overview(
            title=self._title,
            mode=settings.mode,
            synced=controller.state.synced,
            halted=snapshot.ongoing.halted or None,
            planner=settings.planner.name,
            threshold=settings.happiness.threshold,
            at=snapshot.at,
            cycles=controller.loop.turns,
            rematches=self.timeline.rematches,
            moves=self.timeline.moves,
            settings=self._settings_view(),
            problems=tuple(self._problems()),
            nodes=tuple(_node_view(node, snapshot, chips) for node in nodes),
            pending=tuple(chips.of(pod) for pod in sorted(pending, key=lambda pod: pod.key)),
        )

    async def series(self) -> Series:
        return self.timeline.series()

    async def decisions(self, limit: int, before: int | None, waits: bool) -> tuple[DecisionView, ...]:
        return self.timeline.decisions(limit, before, waits=waits)

    async def pod(self, namespace: str, name: str) -> PodView | None:
        snapshot = self._snapshot()
        pod = snapshot.cluster.pod_named(namespace, name)
        if pod is None:
            return None
        settings = self._controller.settings.get()
        placement = await self._planned(pod)
        if placement is None:
            placement = await asyncio.to_thread(placement_now, pod, snapshot, settings)
        evidence = self._controller.state.probes.evidence(pod.uid, snapshot.at)
        return pod_view(pod, snapshot, settings, Facts(evidence, placement, self.timeline.about(pod.key)))

    async def _planned(self, pod: Pod) -> PlacementView | None:
        """From the last plan that named the pod, or its predecessor when it is the replacement of a moved one."""
        lineage = self._controller.executor.ongoing().lineage.get(pod.uid)
        for uid in (pod.uid, *((lineage.predecessor,) if lineage else ())):
            row = await self._controller.store.last_plan_for(uid)
            if row is not None:
                return placement_in(msgspec.json.decode(row.document), uid, Origin(row.id, row.at, row.planner))
        return None

    async def wait_for_change(self, after: int) -> int:
        while self._version() == after:
            await self._controller.clock.sleep(LOOK_EVERY)
        return self._version()

    def live(self) -> Health:
        return Health(ok=True)

    def ready(self) -> Health:
        """Not before everything was listed, and not while something may not be read: each kind with its reason."""
        missing = self._controller.state.mirror.missing
        reasons = [
            f"{'not listed yet' if state.kind in missing else 'not watched'}: {state.kind.value}"
            + (f" ({state.last_error})" if state.last_error else "")
            for state in self._controller.watch.states
            if state.kind in missing or state.denied
        ]
        return Health(not reasons, tuple(sorted(reasons)))

    def _version(self) -> int:
        """Moves with the state, with every turn and with every sample of the charts."""
        return self._controller.state.version + self._controller.loop.turns + self.timeline.changes

    def _snapshot(self) -> Snapshot:
        return self._controller.state.freeze(self._controller.executor.ongoing())

    def _sample(self, snapshot: Snapshot) -> Sample:
        level = self._controller.measuring.service_level
        management = Management.of(self._controller.settings.get())
        moods = snapshot.happiness
        happiness = [
            moods[pod.uid].probability if pod.uid in moods else 1.0
            for pod in snapshot.cluster.pods.values()
            if pod.node is not None and pod.deleting is None and management.covers(pod)
        ]
        uses = {node.name: node_use(node, snapshot) for node in snapshot.cluster.nodes.values()}
        return Sample(
            at=snapshot.at,
            availability=level.availability,
            latency_p95=level.latency_p95,
            happiness_min=min(happiness, default=None),
            happiness_mean=fmean(happiness) if happiness else None,
            cpu={name: use.shares["cpu"] if use else None for name, use in uses.items()},
            memory={name: use.shares["memory"] if use else None for name, use in uses.items()},
        )

    def _settings_view(self) -> SettingsView:
        source = self._controller.settings.source
        refused = source.refused.problems if source.refused is not None else ()
        return SettingsView(
            source.current.digest[:12],
            source.current.source,
            tuple(Refusal(path, message) for path, message in refused),
        )

    def _problems(self) -> Iterator[str]:
        yield from (text for text in self._controller.measuring.problems.values() if text)
        for state in self._controller.watch.states:
            if state.last_error:
                yield f"{state.kind.value}: {state.last_error}"
        if self._controller.notes.problem:
            yield f"Events are not written: {self._controller.notes.problem}"
        if self._controller.store.health.error:
            yield f"store: {self._controller.store.health.error}"


class _Chips:
    """Pods as the overview shows them, with what is the same for all of them worked out once."""

    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        self._snapshot = snapshot
        self._settings = settings
        self._management = Management.of(settings)

    def of(self, pod: Pod) -> PodChip:
        managed = self._management.covers(pod)
        mood = self._snapshot.happiness.get(pod.uid)
        threshold = mood.threshold.value if mood else self._settings.happiness.threshold
        probed = any(container.liveness for container in pod.containers)
        happiness = mood.probability if mood else 1.0 if managed and probed and pod.node else None
        return PodChip(
            uid=pod.uid,
            key=pod.key,
            happiness=happiness,
            threshold=threshold,
            happy=mood is None or not mood.unhappy,
            managed=managed,
            ready=pod.ready,
            phase="Terminating" if pod.deleting is not None else pod.phase,
            cpu=self._snapshot.usage.usage(pod.uid).cpu.fresh,
            fixed=why_fixed(pod, self._snapshot, self._settings, self._management) if managed else "",
        )


def _node_view(node: Node, snapshot: Snapshot, chips: _Chips) -> NodeView:
    pods = [pod for pod in snapshot.cluster.pods_on(node.name) if not pod.finished]
    usage = snapshot.usage.node_usage(node.name)
    requested = {axis: sum(pod.requests.get(axis, 0.0) for pod in pods) for axis in ("cpu", "memory")}
    return NodeView(
        name=node.name,
        ready=node.ready,
        unschedulable=node.unschedulable,
        cpu=Gauge(usage.cpu.fresh, node.allocatable.get("cpu", 0.0), "cores", requested["cpu"]),
        memory=Gauge(usage.memory.fresh, node.allocatable.get("memory", 0.0), "bytes", requested["memory"]),
        pods=tuple(chips.of(pod) for pod in sorted(pods, key=lambda pod: pod.key)),
    )
