"""One turn of the controller: the signals are in the state; from here it is decision, plan, execution, record."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from matching.plan import Plan, Planner
from matching.problem import Problem
from reactor.decision.decide import Decision, Trigger, decide
from reactor.decision.reasons import Reason
from reactor.execution.executor import Executor
from reactor.execution.outcome import Outcome, Placement, Rematch
from reactor.planning.pending import Pending, pending_pods
from reactor.planning.problems import placement_problem, rematch_problem
from reactor.record.logs import cycle_context
from reactor.record.recorder import Recorder
from reactor.settings.model import Mode, Settings
from reactor.state.live_state import State
from reactor.state.moves import Move, Rest
from reactor.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Stages:
    """What a turn goes through; wired once."""

    state: State
    planner: Callable[[str, Mapping[str, object]], Planner]
    executor: Executor
    recorder: Recorder
    settings: Callable[[], Settings]


async def turn(stages: Stages, trigger: Trigger) -> Outcome:
    """One frozen snapshot, one decision; the effect comes back as a new signal.

    When pods were bound, the rematch waits for the turn that the bindings call for: it has to see them.
    """
    settings = stages.settings()
    with cycle_context() as cycle:
        snapshot, followed = _take_snapshot(stages, settings)
        placement = await _place_pending(stages, snapshot, settings)
        with stages.recorder.timed("decide"):
            decision = decide(snapshot, settings, trigger)
        bound = placement is not None and any(one.succeeded for one in placement.bound)
        rematch = None if bound else await _rematch(stages, snapshot, decision, settings)
        moved = await _execute(stages, snapshot, decision, rematch, settings)
        outcome = Outcome(placement, decision, rematch, (*followed, *moved))
        await stages.recorder.record(cycle, replace(snapshot, ongoing=stages.executor.ongoing()), outcome, settings)
        return outcome


def _take_snapshot(stages: Stages, settings: Settings) -> tuple[Snapshot, list[Move]]:
    """The state as it is, and the moves under way as it shows them."""
    with stages.recorder.timed("snapshot"):
        snapshot = stages.state.freeze(stages.executor.ongoing())
        followed = stages.executor.follow(snapshot, settings)
        return replace(snapshot, ongoing=stages.executor.ongoing()), followed


async def _rematch(stages: Stages, snapshot: Snapshot, decision: Decision, settings: Settings) -> Rematch | None:
    if not decision.rematch or snapshot.ongoing.runs:
        return None
    with stages.recorder.timed("plan"):
        problem = rematch_problem(snapshot, decision, settings)
        plan = await _solve(stages, settings, problem)
    return Rematch(secrets.token_hex(6), plan, problem)


async def _execute(
    stages: Stages, snapshot: Snapshot, decision: Decision, rematch: Rematch | None, settings: Settings
) -> list[Move]:
    """In mode act the plan's moves are adopted and the first ones start; in mode observe nothing is touched."""
    executor = stages.executor
    if rematch is not None:
        _let_rest(executor, snapshot, decision, rematch, settings)
    if settings.mode is not Mode.ACT:
        return executor.stop(snapshot.at, "mode is observe now")
    adopted = executor.adopt(rematch.plan, rematch.plan_id, snapshot) if rematch is not None else []
    await stages.recorder.intend(adopted, snapshot.at)
    with stages.recorder.timed("execute"):
        started = await executor.start(replace(snapshot, ongoing=executor.ongoing()), settings)
    return [*adopted, *started]


def _let_rest(executor: Executor, snapshot: Snapshot, decision: Decision, rematch: Rematch, settings: Settings) -> None:
    """Whoever the plan does not help, or may not help, is not planned for again at once."""
    fates = {move.uid: f"move it to {move.target}" for move in rematch.plan.moves}
    fates |= {left.uid: "dump it" for left in rematch.plan.dumped}
    until = snapshot.at + settings.decision.cooldown
    reasons = {stay.uid: stay.reason for stay in rematch.plan.stays}
    for one in decision.unhappy:
        if one.uid not in fates:
            text = f"plan {rematch.plan_id} keeps it where it is: {reasons.get(one.uid, 'no better node')}"
            executor.rest(one.uid, Rest(until, Reason.NO_BETTER_PLACE, text))
        elif settings.mode is not Mode.ACT:
            text = f"mode is observe: plan {rematch.plan_id} would {fates[one.uid]}"
            executor.rest(one.uid, Rest(until, Reason.OBSERVED, text))


async def _place_pending(stages: Stages, snapshot: Snapshot, settings: Settings) -> Placement | None:
    """Pending pods go where a reservation holds a node for them, else where the matching puts them.

    In mode observe only the replacements of moves under way are bound: what was begun is brought to its end.
    """
    pending = pending_pods(snapshot, settings)
    if not pending.place:
        return Placement(None, (), pending.unsupported) if pending.unsupported else None
    plan = await _place(stages, snapshot, pending, settings)
    replacements = {run.replacement for run in snapshot.ongoing.in_flight}
    moves = [move for move in plan.moves if settings.mode is Mode.ACT or move.uid in replacements]
    bound = await stages.executor.bind(moves, snapshot)
    for one in bound:
        if one.succeeded:
            stages.state.assume_bound(one.pod, one.move.target)
    return Placement(plan, tuple(bound), pending.unsupported)


async def _place(stages: Stages, snapshot: Snapshot, pending: Pending, settings: Settings) -> Plan:
    """A held node that does not take its pod any more is given up, not waited for."""
    plan = await _solve(stages, settings, placement_problem(snapshot, pending.place, settings))
    homeless = {left.uid for left in plan.unplaced if pending.place.get(left.uid)}
    if not homeless:
        return plan
    anywhere = {uid: None if uid in homeless else node for uid, node in pending.place.items()}
    return await _solve(stages, settings, placement_problem(snapshot, anywhere, settings))


async def _solve(stages: Stages, settings: Settings, problem: Problem) -> Plan:
    """Off the event loop: a large cluster takes a while, and watches and probes must not wait for it."""
    planner = stages.planner(settings.planner.name, settings.planner.parameters)
    return await asyncio.to_thread(planner.plan, problem)
