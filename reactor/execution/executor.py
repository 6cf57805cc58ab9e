"""Carries plans out: the only writer of the journal, and the only caller of eviction and binding."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import structlog

from matching.plan import Plan, PlannedMove
from reactor.cluster.records import Pod
from reactor.cluster.writes import Binding, BindingAnswer, ClusterWriter, Eviction, EvictionAnswer
from reactor.decision.reasons import Reason
from reactor.execution.follow import follow, siblings
from reactor.execution.some_at_once import some_at_once
from reactor.execution.start import choose_starts
from reactor.settings.model import Settings
from reactor.state.moves import Lineage, Move, MoveState, Ongoing, Rest, dumping
from reactor.state.snapshot import Snapshot

log = structlog.get_logger(__name__)

BINDING_PAUSE = 5.0
"""How long a pod whose binding failed is left alone, unless the API server asks for more."""

WRITES_AT_ONCE = 16
"""Evictions or bindings of one turn that wait for their answers together."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding that was asked for, and what the API said."""

    pod: Pod
    move: PlannedMove
    answer: BindingAnswer

    @property
    def succeeded(self) -> bool:
        """Also where no answer came: the watch will tell, and until then the room counts as taken."""
        return self.answer.outcome in (Binding.BOUND, Binding.UNKNOWN)


class Executor:
    def __init__(self, writer: ClusterWriter, lineage: Mapping[str, Lineage] | None = None) -> None:
        self._writer = writer
        self._runs: dict[str, Move] = {}
        self._lineage: dict[str, Lineage] = dict(lineage or {})
        self._relieved: dict[str, float] = {}
        self._resting: dict[str, Rest] = {}
        self._unbound: dict[str, float] = {}
        self._last_end = float("-inf")

    @property
    def busy(self) -> bool:
        return bool(self._runs)

    def ongoing(self) -> Ongoing:
        return Ongoing(
            runs=tuple(self._runs.values()),
            lineage=dict(self._lineage),
            relieved=dict(self._relieved),
            resting=dict(self._resting),
            unbound=dict(self._unbound),
            last_end=self._last_end,
        )

    def rest(self, uid: str, rest: Rest) -> None:
        """Leave this pod alone for a while."""
        self._resting[uid] = rest

    def adopt(self, plan: Plan, plan_id: str, snapshot: Snapshot) -> list[Move]:
        """Take over the plan's moves of running pods; they start one by one as `start` finds them possible. Whoever is
        dumped goes first: the others may need the room."""
        adopted = []
        for move in (*map(dumping, plan.dumped), *plan.moves):
            pod = snapshot.cluster.pods.get(move.uid)
            if move.source is None or pod is None:
                continue
            workload = snapshot.cluster.workload_of(pod)
            name = f"{workload.kind}/{pod.namespace}/{workload.name}" if workload else pod.key
            adopted.append(Move(secrets.token_hex(8), plan_id, move, pod, name))
        self._runs.update({run.id: run for run in adopted})
        return adopted

    def follow(self, snapshot: Snapshot, settings: Settings) -> list[Move]:
        """Bring every run up to what the cluster shows; the ones that reached another stage are returned."""
        changed = []
        taken = {run.replacement for run in self._runs.values() if run.replacement is not None}
        for run in list(self._runs.values()):
            after = follow(run, snapshot.cluster, snapshot.at, settings.execution, taken)
            if after.replacement is not None:
                taken.add(after.replacement)
            self._settle(after)
            if after.state is not run.state:
                changed.append(after)
        self._forget(snapshot)
        return changed

    def stop(self, now: float, why: str) -> list[Move]:
        """Give up what has not started; what is in flight is still followed."""
        planned = [run for run in self._runs.values() if not run.in_flight]
        return [self._end(run, MoveState.SKIPPED, now, why) for run in planned]

    async def start(self, snapshot: Snapshot, settings: Settings) -> list[Move]:
        """Evict for the planned moves whose turn it is; the changed runs are returned."""
        starts = choose_starts(snapshot, settings)
        changed = [self._skip(run, reason, snapshot, settings) for run, reason in starts.skip]
        calls = [partial(self._evict, run, snapshot, settings) for run in starts.begin]
        return [*changed, *await some_at_once(calls, WRITES_AT_ONCE)]

    async def bind(self, moves: Iterable[PlannedMove], snapshot: Snapshot) -> list[Bound]:
        """Bind pending pods as a placement plan says."""
        return await some_at_once([partial(self._bind, move, snapshot) for move in moves], WRITES_AT_ONCE)

    async def _evict(self, run: Move, snapshot: Snapshot, settings: Settings) -> Move:
        """What came of it is kept at once: a failure of another call must not make us forget it."""
        pod = snapshot.cluster.pods[run.move.uid]
        answer = await self._writer.evict(pod)
        log.info("eviction", pod=pod.key, node=pod.node, target=run.move.target, answer=answer.outcome)
        return self._evicted(run, answer, snapshot, settings)

    async def _bind(self, move: PlannedMove, snapshot: Snapshot) -> Bound:
        pod = snapshot.cluster.pods[move.uid]
        answer = await self._writer.bind(pod, move.target)
        log.info("binding", pod=pod.key, node=move.target, answer=answer.outcome, message=answer.message)
        bound = Bound(pod, move, answer)
        if not bound.succeeded:
            self._unbound[pod.uid] = snapshot.at + max(answer.retry_after or 0.0, BINDING_PAUSE)
        return bound

    def _evicted(self, run: Move, answer: EvictionAnswer, snapshot: Snapshot, settings: Settings) -> Move:
        now, run = snapshot.at, replace(run, answer=answer.outcome)
        if answer.outcome in (Eviction.ACCEPTED, Eviction.UNKNOWN):
            if run.dumps:
                text = f"dumped from {run.move.source}: its replacement waits until a node takes it"
                return self._end(replace(run, evicted=now), MoveState.DONE, now, text)
            there = siblings(run.pod, snapshot.cluster)
            return self._settle(replace(run, state=MoveState.EVICTED, evicted=now, siblings=there))
        if answer.outcome in (Eviction.GONE, Eviction.REPLACED):
            return self._end(run, MoveState.SKIPPED, now, "the pod was gone before it could be evicted")
        budget = answer.outcome in (Eviction.PDB, Eviction.SEVERAL_PDBS)
        reason = Reason.PDB if budget else Reason.EVICTION_FAILED
        until = now + max(answer.retry_after or 0.0, settings.decision.cooldown)
        text = f"eviction refused ({answer.outcome}): {answer.message}"
        self._resting[run.move.uid] = Rest(until, reason, text)
        return self._end(run, MoveState.FAILED, now, text)

    def _skip(self, run: Move, reason: str, snapshot: Snapshot, settings: Settings) -> Move:
        until = snapshot.at + settings.triggers.evaluation_interval
        self._resting[run.move.uid] = Rest(until, Reason.NO_BETTER_PLACE, f"the planned move was skipped: {reason}")
        return self._end(run, MoveState.SKIPPED, snapshot.at, reason)

    def _settle(self, run: Move) -> Move:
        if run.active:
            self._runs[run.id] = run
            return run
        self._runs.pop(run.id, None)
        if run.evicted is not None and run.ended is not None:
            self._last_end = run.ended
            self._relieved[run.pod.node or ""] = run.ended
        if run.state is MoveState.DONE and run.replacement is not None:
            before = self._lineage.get(run.move.uid)
            self._lineage[run.replacement] = Lineage.after(before, run.ended or 0.0, run.move.uid)
        return run

    def _end(self, run: Move, state: MoveState, now: float, outcome: str) -> Move:
        return self._settle(replace(run, state=state, ended=now, outcome=outcome))

    def _forget(self, snapshot: Snapshot) -> None:
        """What concerns pods that are gone, or waits that are over, is not kept."""
        pods = snapshot.cluster.pods
        sources = {run.move.uid for run in self._runs.values()}
        self._resting = {uid: rest for uid, rest in self._resting.items() if uid in pods and snapshot.at < rest.until}
        self._lineage = {uid: line for uid, line in self._lineage.items() if uid in pods or uid in sources}
        self._unbound = {uid: until for uid, until in self._unbound.items() if uid in pods and snapshot.at < until}
        self._relieved = {node: at for node, at in self._relieved.items() if node in snapshot.cluster.nodes}
