"""One cycle of the controller: snapshot, decide, plan, execute, record."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from matching.plan import Plan, Planner
from matching.problem import Problem
from reactor.decision.cooldowns import DecisionMemory
from reactor.decision.decide import Trigger, decide
from reactor.decision.eligibility import Eligibility, KeptChecks
from reactor.errors import PlannerError
from reactor.execution.cycle_outcome import Outcome, Rematch
from reactor.execution.executor import Executor
from reactor.planning.planning_thread import PlanningThread
from reactor.planning.problem_pods import KeptPods
from reactor.planning.problems import rematch_problem
from reactor.record.logs import cycle_context
from reactor.record.recorder import Recorder
from reactor.settings.model import Mode, Settings
from reactor.state.live_state import State
from reactor.state.moves import Move, MoveState
from reactor.state.snapshot import Snapshot

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CycleParts:
    """The parts that a cycle uses. Built once, by `reactor.app.wire`."""

    state: State
    memory: DecisionMemory
    make_planner: Callable[[str, Mapping[str, object]], Planner]
    executor: Executor
    recorder: Recorder
    settings: Callable[[], Settings]
    thread: PlanningThread
    kept_checks: KeptChecks = field(default_factory=KeptChecks)
    kept_pods: KeptPods = field(default_factory=KeptPods)


async def run_cycle(parts: CycleParts, trigger: Trigger, confirmed: Rematch | None = None) -> Outcome:
    """One frozen snapshot, one decision; the effect of a move comes back as a new signal.

    What is known is recorded even when a later step fails; a cancelled cycle is not recorded. `confirmed` is carried
    out instead of a new plan. Pending pods are bound by `reactor.binding`, beside the cycles.
    """
    settings = parts.settings()
    with cycle_context() as cycle:
        snapshot, followed = _take_snapshot(parts, cycle, settings)
        eligibility = Eligibility(snapshot, parts.memory.cooldowns, settings, parts.kept_checks)
        with parts.recorder.timed("decide"):
            decision = decide(eligibility, trigger)
        outcome = Outcome(decision, followed=followed)
        executed: list[Move] = []

        def record() -> Outcome:
            known = replace(outcome, executed=tuple(executed), active=parts.executor.active_moves())
            parts.recorder.record(cycle, snapshot, known, settings)
            parts.recorder.record_shortage(parts.memory.cooldowns.shortage, snapshot)
            return known

        try:
            outcome = replace(outcome, rematch=await _plan_rematch(parts, eligibility, outcome, confirmed))
            if outcome.rematch is not None:
                parts.recorder.record_plan(cycle, decision, outcome.rematch, settings)
            await _execute(parts, cycle, eligibility, outcome, executed)
        except Exception:
            _record_best_effort(record)
            raise
        known = record()
        await parts.executor.forget_finished()
        return known


def _take_snapshot(parts: CycleParts, cycle: str, settings: Settings) -> tuple[Snapshot, tuple[Move, ...]]:
    """The state, with the moves as the cluster shows them now. Moves that changed are recorded at once."""
    with parts.recorder.timed("snapshot"):
        cluster = parts.state.start_cycle()
        followed = tuple(parts.executor.follow(cluster, cluster.at, settings))
        _follow_rounds(parts, followed, cluster.at)
        snapshot = parts.state.freeze(parts.executor.active_moves(), cluster)
    moving = {move.pod.uid for move in snapshot.moves.moves}
    remembered = parts.memory.cooldowns.after_moves(followed, settings)
    learned, verdicts = remembered.judged(snapshot, settings)
    parts.memory.cooldowns = learned.without_expired(cluster, snapshot.at, moving)
    parts.recorder.record_moves(cycle, followed, snapshot)
    parts.recorder.record_effects(verdicts, learned.brakes, snapshot.at)
    parts.recorder.check_moves(cycle, remembered.effects.trials, verdicts, snapshot)
    return snapshot, followed


async def _plan_rematch(
    parts: CycleParts, eligibility: Eligibility, outcome: Outcome, confirmed: Rematch | None
) -> Rematch | None:
    """Not while moves are under way."""
    if not outcome.decision.rematch or eligibility.snapshot.moves.under_way:
        return None
    if confirmed is not None:
        return confirmed
    with parts.recorder.timed("plan"):
        problem = rematch_problem(eligibility, outcome.decision, parts.kept_pods)
        plan = await _solve(parts, eligibility.settings, problem)
    return Rematch(secrets.token_hex(6), plan, problem)


async def _execute(
    parts: CycleParts, cycle: str, eligibility: Eligibility, outcome: Outcome, executed: list[Move]
) -> None:
    """Moves in flight go on. In mode act the plan's moves are adopted and the first ones start; in other modes what is
    in flight is finished or taken back. Without a writable store nothing is started.

    Moves are added to `executed` as they change, so that a call that fails does not lose what the others did.
    """
    executor, snapshot, settings = parts.executor, eligibility.snapshot, eligibility.settings
    rematch = outcome.rematch
    if rematch is not None:
        unhappy = [one.uid for one in outcome.decision.unhappy]
        parts.memory.cooldowns = parts.memory.cooldowns.after_plan(
            unhappy, rematch.plan_id, rematch.plan, snapshot.at, settings
        ).after_shortage(rematch.plan, snapshot, settings)
    acting = settings.mode is Mode.ACT
    try:
        await executor.proceed(snapshot.cluster, snapshot.at, settings, executed.append, stopping=not acting)
        if not acting:
            executed += await executor.stop(snapshot.at, f"cancelled: mode is {settings.mode} now")
            return
        if rematch is not None:
            executed += executor.adopt(rematch.plan, rematch.plan_id, snapshot)
            _follow_rounds(parts, executed, snapshot.at)
        waiting = any(not move.in_flight for move in executor.active_moves().moves)
        if waiting and not await parts.recorder.store_planned_moves(cycle, executed, snapshot.at):
            return
        with parts.recorder.timed("execute"):
            now = _as_it_is_now(parts, eligibility) if waiting else eligibility
            await executor.start(now, executed.append)
    finally:
        parts.memory.cooldowns = parts.memory.cooldowns.after_moves(executed, settings)
        _follow_rounds(parts, executed, snapshot.at)


def _follow_rounds(parts: CycleParts, moves: Iterable[Move], now: float) -> None:
    """For the latency planners: a node is visited from the plan on, unless the move comes to nothing."""
    latency = parts.state.latency
    for move in moves:
        if move.state is MoveState.DONE:
            latency.rounds.arrived(move.id, now)
        elif not move.active:
            latency.rounds.rolled_back(move.id)
        elif (pod := parts.state.mirror.pod(move.pod.uid)) is not None and (role := latency.role(pod)) is not None:
            latency.rounds.reserve(move.id, role, move.source, move.target, now)
    latency.rounds.forget_others(move.id for move in parts.executor.active_moves().moves)


def _as_it_is_now(parts: CycleParts, eligibility: Eligibility) -> Eligibility:
    """A plan may take a minute. Since the snapshot pods were bound, replicas may have failed, and a user may have
    protected a pod."""
    snapshot = parts.state.freeze(parts.executor.active_moves())
    return Eligibility(snapshot, eligibility.cooldowns, eligibility.settings, eligibility.kept)


def _record_best_effort(record: Callable[[], object]) -> None:
    """The error of the cycle is raised, not one of its record."""
    try:
        record()
    except Exception:
        log.exception("could not record the outcome of the failed cycle")


async def _solve(parts: CycleParts, settings: Settings, problem: Problem) -> Plan:
    planner = parts.make_planner(settings.planner.name, settings.planner.parameters)
    try:
        return await parts.thread.run(partial(planner.plan, problem), settings.planner.deadline)
    except PlannerError as error:
        raise PlannerError(f"planner {settings.planner.name}: {error}; see planner.deadline") from None
