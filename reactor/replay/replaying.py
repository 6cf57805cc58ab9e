"""One replay: the given demand, probes that fail by chance, and the real decisions and plans in steps of a minute."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from matching.plan import PlannedMove
from matching.problem import USUAL_STARTUP_SECONDS, Strategy
from predictors.failure_response import FailureResponse
from predictors.failure_runs import runs_by_minute
from reactor.cluster.kinds import BY_OBJECT_KIND, CLUSTER_KINDS, Kind
from reactor.cluster.records import Pod, Record
from reactor.cluster.view import ClusterView
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.decide import Trigger, decide
from reactor.decision.eligibility import ALLOWED_NOW, PROTECTED, Eligibility, KeptChecks
from reactor.planning.problem_pods import KeptPods
from reactor.planning.problems import rematch_problem
from reactor.replay.clock import MINUTE, ReplayClock
from reactor.replay.counters import Counters
from reactor.replay.given import Given, Ints
from reactor.replay.measuring import Measuring, with_steps_fresh
from reactor.replay.recorded import STEP
from reactor.settings.model import Mode, Settings
from reactor.settings.planner import make_planner
from reactor.state.happiness import half_life
from reactor.state.live_state import NEGLIGIBLE_FAILURES, State
from reactor.state.moves import ActiveMoves, Move, MoveState, PodRef
from reactor.state.snapshot import Snapshot
from reactor.state.steering import SteeringStatus
from reactor.state.thresholds import threshold_of
from reactor.work_queue import WorkQueue

Floats = NDArray[np.float64]
UNHAPPY = 0.1
"""A pod that fails more than this share of its probes in a step is unhappy in it, whatever the settings call so: what
is compared must not depend on what is chosen."""
_SETTLE = 5.0
"""Seconds of a move beside the start of the replacement."""
_SURE = 1.0 - 1e-9
_CLOSE = 0.002
"""A pod that is as close to its threshold gets a cycle: the controller's own counts decide."""


@dataclass(frozen=True, slots=True)
class Decided:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """By day: moves that were made, and pod-minutes in which a pod was unhappy."""

    moves: Floats
    unhappy: Floats
    pod_minutes: float
    unseen: float
    """Pod-minutes at loads that no probe of the record was seen at."""
    decided: tuple[Decided, ...]


def recorded_unhappy(given: Given, first: int = 0) -> Floats:
    """Pod-minutes by day, counted as in a replay."""
    probes, failures = given.observed
    with np.errstate(invalid="ignore"):
        unhappy = (failures > UNHAPPY * probes).sum(axis=0) * (STEP / MINUTE)
    unhappy[:first] = 0
    days = [given.day_of(step) for step in range(given.steps)]
    return np.bincount(days, unhappy).astype(np.float64)


class Replay:
    def __init__(self, given: Given, response: FailureResponse, settings: Settings, seed: int, first: int = 0) -> None:
        """`first`: the step to begin with, as recorded."""
        self._given, self._response, self._settings = given, response, settings
        self._random = np.random.default_rng(seed)
        self._first = first
        self._clock = ReplayClock(given.begin + first * STEP)
        in_state = with_steps_fresh(settings)
        self._state = State(
            CLUSTER_KINDS,
            self._clock,
            WorkQueue(self._clock),
            lambda: in_state,
            steering=lambda: SteeringStatus(policy_works=True, problem=""),
        )
        self._state.calibration.curve = given.curve
        self._planner = make_planner(settings.planner.name, settings.planner.parameters)
        self._cooldowns = Cooldowns()
        self._kept_checks, self._kept_pods = KeptChecks(), KeptPods()
        self._queue: deque[tuple[PlannedMove, str, float]] = deque()
        self._version = 0
        number = len(given.workload)
        self._on: Ints = np.full(number, -1, np.int32)
        self._pods: list[Pod | None] = [None] * number
        self._by_uid: dict[str, int] = {}
        self._lives = [0] * number
        self._whole, self._latent = self._random.random((2, STEP // MINUTE, number))
        """By minute of a step and replica."""
        runs = runs_by_minute(response.together, response.lasting, given.probes, STEP // MINUTE)
        self._together, self._lasting = (each[given.workload] for each in runs)
        half_lives, self._threshold = self._by_replica()
        self._counters = Counters(self._state, self._clock, half_lives)
        self._measuring = Measuring(given, self._state.usage, settings.metrics.peak_window)
        self._limited_until: dict[str, float] = {}
        """By workload."""
        self._interval = self._clock.time
        self._moves, self._unhappy = np.zeros(given.days), np.zeros(given.days)
        self._decided: list[Decided] = []
        self._placed: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for each in given.placed:
            self._placed[each.step].append((each.replica, each.node))

    def run(self) -> Replayed:
        given, first = self._given, self._first
        self._start()
        minutes = unseen = 0.0
        for step in range(first, given.steps):
            self._begin(step)
            if not given.measured[step]:
                continue
            loads = self._step(step)
            here = self._on >= 0
            minutes += float(here.sum()) * STEP / MINUTE
            unseen += float((loads[here] > self._response.highest_seen).sum()) * STEP / MINUTE
        return Replayed(self._moves, self._unhappy, minutes, unseen, tuple(self._decided))

    # The cluster.

    def _start(self) -> None:
        given, mirror = self._given, self._state.mirror
        found = _records(given.cluster)
        found[Kind.NODES] = [msgspec.structs.replace(node, ready=True, unschedulable=False) for node in given.nodes]
        self._ready = np.ones(len(given.nodes), np.bool_)
        for kind in CLUSTER_KINDS:
            mirror.replaced(kind, found.get(kind, []))
        for replica in np.flatnonzero(given.recorded_node[:, self._first] >= 0).tolist():
            self._put(replica, int(given.recorded_node[replica, self._first]))

    def _begin(self, step: int) -> None:
        """What is given for this step: nodes, pods that end and begin, rollouts."""
        given = self._given
        self._clock.time = given.begin + step * STEP
        for node in np.flatnonzero(given.node_ready[:, step] != self._ready).tolist():
            self._ready[node] = given.node_ready[node, step]
            record = msgspec.structs.replace(
                given.nodes[node], ready=bool(self._ready[node]), resource_version=self._next_version()
            )
            self._state.mirror.upsert(Kind.NODES, record)
        wanted = given.recorded_node[:, step]
        for replica in np.flatnonzero((self._on >= 0) & (wanted < 0)).tolist():
            self._end(replica)
        for replica, node in self._placed.get(step, ()):
            if node >= 0 and self._on[replica] != node:
                self._put(replica, node)
        lost = (self._on >= 0) & (wanted >= 0) & ~self._ready[self._on] & (wanted != self._on)
        missing = (self._on < 0) & (wanted >= 0)
        for replica in np.flatnonzero(lost | missing).tolist():
            self._put(replica, int(wanted[replica]))

    def _put(self, replica: int, node: int) -> Pod:
        """A new pod of the replica, Ready on this node."""
        self._end(replica)
        given, now = self._given, self._clock.time
        template = given.templates[given.workload[replica]]
        self._lives[replica] += 1
        uid = f"replica-{replica}.{self._lives[replica]}"
        containers = tuple(
            msgspec.structs.replace(each, restarts=0, started=now, terminated=None) for each in template.containers
        )
        pod: Pod = msgspec.structs.replace(
            template,
            uid=uid,
            name=f"{template.name}.{replica}.{self._lives[replica]}",
            resource_version=self._next_version(),
            created=now,
            scheduled=now,
            started=now,
            ready_since=now,
            ready=True,
            phase="Running",
            node=given.nodes[node].name,
            containers=containers,
        )
        self._on[replica], self._pods[replica], self._by_uid[uid] = node, pod, replica
        self._state.mirror.upsert(Kind.PODS, pod)
        self._count_owner(replica)
        self._counters.begin(replica, pod)
        return pod

    def _end(self, replica: int) -> None:
        pod = self._pods[replica]
        if pod is None:
            return
        self._counters.show(set(np.flatnonzero(self._on == self._on[replica]).tolist()))
        self._counters.end(replica)
        self._on[replica], self._pods[replica] = -1, None
        del self._by_uid[pod.uid]
        self._state.mirror.remove(Kind.PODS, pod.uid)
        self._count_owner(replica)

    def _count_owner(self, replica: int) -> None:
        """Its owners are in no rollout: they have as many pods as they want."""
        given, mirror = self._given, self._state.mirror
        of = given.workload[replica]
        owner = given.templates[of].owner
        number = int(((given.workload == of) & (self._on >= 0)).sum())
        while owner is not None and (known := given.cluster.workloads.get(owner.uid)) is not None:
            counted = msgspec.structs.replace(
                known,
                resource_version=self._next_version(),
                replicas=number,
                existing=number,
                ready=number,
                available=number,
                updated=number,
                observed_generation=known.generation,
            )
            mirror.upsert(BY_OBJECT_KIND[known.kind], counted)
            owner = known.owner

    def _next_version(self) -> str:
        self._version += 1
        return f"replay-{self._version}"

    # Time.

    def _step(self, step: int) -> Floats:
        """Five minutes. Returns the loads that the replicas feel at their end.

        As many random numbers are drawn whatever happened before: replays differ by their settings alone."""
        given, shape = self._given, (STEP // MINUTE, len(self._on))
        self._draw_together()
        rates = np.floor(given.probes[given.workload] + self._random.random(shape))
        drawn = self._random.random(shape)
        loads = given.loads(self._on, step).seen(self._response.common)
        probes, failures = rates * (self._on >= 0), np.zeros(shape)
        chance = self._chance(loads)
        failing = self._may_fail(slice(None), probes, drawn, chance)
        self._measuring.due(step, given.begin + step * STEP + MINUTE)
        if not failing.any() and self._at_rest():
            self._counters.pass_quietly(probes)
            return loads
        for minute in range(len(rates)):
            self._clock.time = given.begin + step * STEP + (minute + 1) * MINUTE
            failures[minute] = self._failures_of(minute, probes[minute], drawn[minute], chance, failing[minute])
            if self._live(probes[minute], failures[minute]):
                loads, later = given.loads(self._on, step).seen(self._response.common), slice(minute + 1, None)
                chance = self._chance(loads)
                probes[later] = rates[later] * (self._on >= 0)
                failing[later] = self._may_fail(later, probes[later], drawn[later], chance)
                if minute + 1 < len(rates):
                    self._measuring.due(step, self._clock.time + MINUTE)
        unhappy = failures.sum(axis=0) > UNHAPPY * np.maximum(probes.sum(axis=0), 1e-9)
        self._unhappy[given.day_of(step)] += float(unhappy.sum()) * STEP / MINUTE
        return loads

    def _chance(self, loads: Floats) -> Floats:
        here = self._on >= 0
        found = np.zeros(len(self._on))
        found[here] = self._response.probabilities(loads[here], self._given.workload[here])
        return np.minimum(found, _SURE)

    def _draw_together(self) -> None:
        """For the minutes of a step: whose probes fail together or not at all."""
        if not self._together.any():
            return
        lasts, whole, latent = self._random.random((3, *self._whole.shape))
        for minute in range(len(lasts)):
            keeps = lasts[minute] < self._lasting
            self._whole[minute] = np.where(keeps, self._whole[minute - 1], whole[minute])
            self._latent[minute] = np.where(keeps, self._latent[minute - 1], latent[minute])

    def _may_fail(self, minutes: slice, probes: Floats, drawn: Floats, chance: Floats) -> NDArray[np.bool_]:
        """By minute and replica: whether a probe fails."""
        alone = drawn > (1.0 - chance) ** probes
        fails: NDArray[np.bool_] = np.where(
            self._whole[minutes] < self._together, self._latent[minutes] < chance, alone
        )
        return fails & (probes > 0)

    def _failures_of(
        self, minute: int, probes: Floats, drawn: Floats, chance: Floats, failing: NDArray[np.bool_]
    ) -> Floats:
        together = self._whole[minute] < self._together
        failures = np.where(failing & together, probes, 0.0)
        for at in np.flatnonzero(failing & ~together).tolist():
            failures[at] = _quantile(drawn[at], int(probes[at]), chance[at])
        return failures

    def _at_rest(self) -> bool:
        """Nothing is under way, and time alone makes nobody unhappy."""
        waiting = self._cooldowns.effects.trials or self._cooldowns.shortage
        periodic = self._settings.triggers.rematch_interval > 0
        return not (self._queue or waiting or periodic or self._anybody_unhappy())

    def _live(self, probes: Floats, failures: Floats) -> bool:
        """One minute of the controller. Whether a pod has another node after it."""
        self._counters.count(probes, failures)
        if self._settings.mode is not Mode.ACT:
            return False  # whatever it decided, nothing would change
        trigger = self._trigger()
        if trigger is Trigger.UNHAPPY and self._nothing_to_decide():
            return False
        self._counters.show()
        self._measuring.catch_up(self._on, self._pods, self._clock.time)
        return self._cycle(trigger)

    def _nothing_to_decide(self) -> bool:
        return not (self._queue or self._judging() or self._looks_again() or self._anybody_unhappy())

    def _looks_again(self) -> bool:
        """For pods that wait for capacity: when something is measured, and when none of them is unhappy any more."""
        shortage = self._cooldowns.shortage
        if shortage is None:
            return False
        low, waiting = self._low(0.0), [self._by_uid[uid] for uid in shortage.pods if uid in self._by_uid]
        return self._measuring.is_due(self._clock.time) or not low[waiting].any()

    def _low(self, margin: float) -> NDArray[np.bool_]:
        """By replica, whether its happiness is below its threshold."""
        good, bad = self._settings.happiness.goodwill + self._counters.good, self._counters.bad
        low: NDArray[np.bool_] = (bad >= NEGLIGIBLE_FAILURES) & (good < (self._threshold + margin) * (good + bad))
        return low

    def _anybody_unhappy(self) -> bool:
        """Whether a decision could start a rematch: pods that back off do not count."""
        found = (self._pods[replica] for replica in np.flatnonzero(self._low(_CLOSE)).tolist())
        return any(self._may_start(pod) for pod in found if pod is not None)

    def _may_start(self, pod: Pod) -> bool:
        now, backoff = self._clock.time, self._cooldowns.backoffs.get(pod.uid)
        if backoff is not None and now < backoff.until:
            return False
        on_trial = pod.uid in self._cooldowns.effects.trials  # a cycle also notes that the move did not help
        return on_trial or not self._limited(pod)

    def _limited(self, pod: Pod) -> bool:
        """With more moves a limit is reached for longer, so it is not looked at before it ends."""
        now, name = self._clock.time, self._given.cluster.workload_name(pod)
        if now >= self._limited_until.get(name, now):
            limits = self._settings.execution.limits
            exceeded = self._cooldowns.recent.exceeds(pod.namespace, name, now, limits)
            self._limited_until[name] = now if exceeded is None else exceeded.until
        return now < self._limited_until[name]

    def _judging(self) -> bool:
        return any(each.judged_at <= self._clock.time for each in self._cooldowns.effects.trials.values())

    def _trigger(self) -> Trigger:
        interval = self._settings.triggers.rematch_interval
        if interval <= 0 or self._clock.time < self._interval + interval:
            return Trigger.UNHAPPY
        self._interval = self._clock.time
        return Trigger.INTERVAL

    # What the controller does.

    def _cycle(self, trigger: Trigger) -> bool:
        settings, now = self._settings, self._clock.time
        cluster = self._state.start_cycle()
        snapshot = self._state.freeze(ActiveMoves(), cluster)
        judged, _ = self._cooldowns.judged(snapshot, settings)
        self._cooldowns = judged.without_expired(cluster, now, ())
        eligibility = Eligibility(snapshot, self._cooldowns, settings, self._kept_checks)
        if not self._queue:
            self._plan(eligibility, trigger)
        return self._move(snapshot)

    def _plan(self, eligibility: Eligibility, trigger: Trigger) -> None:
        decision, now, settings = decide(eligibility, trigger), self._clock.time, self._settings
        if not decision.rematch:
            return
        plan = self._planner.plan(rematch_problem(eligibility, decision, self._kept_pods))
        plan_id = f"plan-{self._version}"
        unhappy = [one.uid for one in decision.unhappy]
        learned = self._cooldowns.after_plan(unhappy, plan_id, plan, now, settings)
        self._cooldowns = learned.after_shortage(plan, eligibility.snapshot, settings)
        self._queue.extend((move, plan_id, now) for move in plan.moves if move.source is not None)

    def _move(self, snapshot: Snapshot) -> bool:
        """As many as fit into a minute; the others later, while their plan is not too old."""
        settings, now, moved = self._settings, self._clock.time, False
        left = float(MINUTE * settings.execution.max_moves_in_flight)
        while self._queue and left > 0:
            move, plan_id, planned = self._queue.popleft()
            replica = self._by_uid.get(move.uid)
            if replica is None or now - planned > settings.execution.max_plan_age:
                continue
            pod = snapshot.cluster.pods.get(move.uid)
            eligibility = Eligibility(snapshot, self._cooldowns, settings)
            if pod is None or eligibility.why_not(pod, (*PROTECTED, *ALLOWED_NOW)) is not None:
                continue
            left -= self._carry_out(replica, pod, move, plan_id, snapshot)
            moved = True
        return moved

    def _carry_out(self, replica: int, pod: Pod, move: PlannedMove, plan_id: str, snapshot: Snapshot) -> float:
        """Returns the seconds that it takes. An evicted pod is missing for as long."""
        now, given = self._clock.time, self._given
        target = next(at for at, node in enumerate(given.nodes) if node.name == move.target)
        unhappy = pod.uid in snapshot.happiness and snapshot.happiness[pod.uid].unhappy
        new = self._put(replica, target)
        seconds = USUAL_STARTUP_SECONDS + _SETTLE
        day = given.day_of(int((now - given.begin - 1) // STEP))
        self._moves[day] += 1
        if move.strategy is Strategy.EVICT:
            self._unhappy[day] += seconds / MINUTE
        what = f"{given.workloads[given.workload[replica]]} from {move.source} to {move.target}"
        self._decided.append(Decided(now, f"{what}: {'; '.join(move.reasons[:1])}"))
        done = Move(
            id=f"{plan_id}.{new.uid}",
            plan_id=plan_id,
            pod=PodRef(pod.namespace, pod.name, pod.uid),
            owner=pod.owner,
            template_hash=pod.template_hash,
            workload=snapshot.cluster.workload_name(pod),
            source=move.source or "",
            target=move.target,
            strategy=move.strategy,
            state=MoveState.DONE,
            began=now,
            evicted=now,
            bound=now,
            ended=now,
            replacement=new.uid,
            unhappy=unhappy,
        )
        self._cooldowns = self._cooldowns.after_moves((done,), self._settings)
        return seconds

    def _by_replica(self) -> tuple[Floats, Floats]:
        """The half-life of its probes and its threshold."""
        given, happiness = self._given, self._settings.happiness
        lives = half_life(happiness)
        seconds = np.array([lives.of(MINUTE / rate if rate > 0 else 0.0) for rate in given.probes.tolist()])
        namespaces = given.cluster.namespaces
        thresholds = np.array(
            [threshold_of(pod, namespaces.get(pod.namespace), happiness).value for pod in given.templates]
        )
        return seconds[given.workload], thresholds[given.workload]


def _quantile(drawn: float, probes: int, chance: float) -> float:
    """The number of failures of which so large a share of all cases is below."""
    term = total = (1.0 - chance) ** probes
    failed = 0
    while drawn > total and failed < probes:
        term *= (probes - failed) / (failed + 1) * chance / (1.0 - chance)
        failed += 1
        total += term
    return float(failed)


def _records(view: ClusterView) -> dict[Kind, list[Record]]:
    """Everything but pods and nodes."""
    found: defaultdict[Kind, list[Record]] = defaultdict(list)
    for workload in view.workloads.values():
        found[BY_OBJECT_KIND[workload.kind]].append(workload)
    found[Kind.PDBS] = list(view.pdbs)
    found[Kind.NAMESPACES] = list(view.namespaces.values())
    found[Kind.PVCS] = list(view.pvcs)
    found[Kind.PVS] = list(view.pvs.values())
    found[Kind.CSI_NODES] = list(view.csi_nodes.values())
    found[Kind.VOLUME_ATTACHMENTS] = list(view.volume_attachments)
    found[Kind.HPAS] = list(view.hpas)
    found[Kind.SERVICES] = list(view.services)
    found[Kind.RESOURCE_QUOTAS] = list(view.quotas)
    return found
