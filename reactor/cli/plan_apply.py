"""`rematch plan --apply`: carries a confirmed plan out with the cycles of the controller, and records it as they do."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum, auto

import click

from matching.plan import Plan
from reactor.app import Controller, LiveController
from reactor.binding import bind_pending
from reactor.cli.planning import Planned
from reactor.cluster.api import ApiRequest, checked
from reactor.cluster.kinds import Kind, ObjectName
from reactor.cluster.records import Pod
from reactor.cluster.requests import Action, RequestedMove, RequestSpec
from reactor.cycle import run_cycle
from reactor.decision.decide import Trigger
from reactor.errors import ClusterError, InputError, RematchError
from reactor.execution.cycle_outcome import Outcome, Placement, Rematch
from reactor.settings.load import parse_settings
from reactor.settings.model import Mode, Settings
from reactor.state.moves import MoveState
from storage import StorageError
from storage.lock import locked
from storage.place import Place
from storage.store import Store

CONTROLLER_LABEL = ("app.kubernetes.io/name", "rematch")
"""Of the controller's pods, as `deploy/rematch.yaml` installs it."""
ANSWER_DEADLINE = 10.0
"""Seconds for one answer of the API server."""
LEASE_POLL = 0.1
CATCH_UP = 1.0
_NOT_CARRIED_OUT = frozenset({MoveState.FAILED, MoveState.SKIPPED, MoveState.LATE})
"""Seconds for the watches to read what happened while the question was open."""


class StoreUse(Enum):
    FREE = auto()
    OBSERVING = auto()
    """A running controller in mode observe uses it."""
    ACTING = auto()
    """In mode act or bind: it binds the replacements of other processes' moves, too."""


async def use_of_store(path: Place) -> StoreUse:
    """What another process does with the store. Raises StorageError if it runs a version with another schema."""
    with locked(path) as alone:
        if alone:
            return StoreUse.FREE
    async with await Store.open(path, read_only=True) as store:
        accepted = next((row for row in await store.revisions() if row.accepted), None)
    acts = accepted is None or parse_settings(accepted.text, accepted.source).mode is not Mode.OBSERVE
    return StoreUse.ACTING if acts else StoreUse.OBSERVING


async def refuse_beside_controller(live: LiveController, config_map: ObjectName, use: StoreUse, *, force: bool) -> None:
    """Two that act at the same time would not see each other's reservations, limits and cooldowns."""
    found = f"a controller that binds pods uses {live.controller.store.place}" if use is StoreUse.ACTING else ""
    pod = _controller_pod(live)
    if pod is not None and not found:
        mode = await _mode_of(live, config_map)
        if mode is not Mode.OBSERVE:
            found = f"the controller {pod.key} is running in {f'mode {mode}' if mode else 'a mode that cannot be read'}"
    if not found:
        return
    if not force:
        name = f"{config_map.namespace}/{config_map.name}"
        raise InputError(
            f"{found}, carries out plans itself and may move the same pods; set `mode: observe` in its settings"
            f" (ConfigMap {name}) first, or add --force"
        )
    click.echo(f"warning: {found}; both may move the same pods", err=True)


def _controller_pod(live: LiveController) -> Pod | None:
    label, value = CONTROLLER_LABEL
    pods = live.controller.state.freeze(live.controller.executor.active_moves()).cluster.pods.values()
    running = (pod for pod in pods if pod.phase == "Running" and pod.deleting is None)
    return next((pod for pod in running if pod.labels.get(label) == value), None)


async def _mode_of(live: LiveController, config_map: ObjectName) -> Mode | None:
    """The mode in the controller's ConfigMap; None if it cannot be read."""
    path = f"{Kind.CONFIG_MAPS.path(config_map.namespace)}/{config_map.name}"
    try:
        response = await live.connection.send(ApiRequest("GET", path, deadline=ANSWER_DEADLINE))
        return parse_settings(checked(response, f"GET {path}").decode(), path).mode
    except (RematchError, UnicodeDecodeError):
        return None


async def until_acting(live: LiveController) -> None:
    """The command leads as a controller does: it takes the Lease and writes the journal."""
    acting, clock = live.controller.acting, live.controller.clock
    deadline = clock.monotonic() + live.options.lease.duration + CATCH_UP
    while acting.hindrance:
        if clock.monotonic() >= deadline or acting.paused is not None:
            raise ClusterError(f"nothing was changed: {acting.hindrance}")
        await clock.sleep(LEASE_POLL)


async def confirm(controller: Controller, plan: Plan) -> None:
    if not click.confirm(_confirmation(plan), err=True):
        click.echo("nothing was changed", err=True)
        raise click.exceptions.Exit(1)
    await controller.clock.sleep(CATCH_UP)


def requested(plan: Plan, leader: str) -> RequestSpec:
    """The moves of running pods, for the controller that leads; it binds pending pods itself."""
    if plan.dumped:
        raise InputError(f"{leader} leads and dumps no pods on request; stop it to carry this plan out")
    moves = tuple(RequestedMove(move.pod, move.target, move.uid) for move in plan.moves if move.source is not None)
    if not moves:
        raise InputError(f"{leader} leads and binds pending pods itself; there is nothing else to do")
    click.echo(f"{leader} leads: it carries the plan out", err=True)
    return RequestSpec(Action.APPLY, "rematch plan --apply", moves=moves)


async def apply_plan(
    controller: Controller, planned: Planned, settings: Callable[[], Settings], *, to_stderr: bool
) -> None:
    """Run cycles until the last move has ended. A late replacement ends the command, too.

    `to_stderr`: print the progress to standard error, because a program reads the plan from standard output.
    """
    plan_id = secrets.token_hex(6)
    click.echo(f"plan {plan_id} is recorded in {controller.store.place}", err=True)
    rematch: Rematch | None = Rematch(plan_id, planned.plan, planned.problem)
    parts, executor = replace(controller.parts, settings=settings), controller.executor
    binding_parts = replace(controller.binding_parts, settings=settings)
    failed = 0
    try:
        while rematch is not None or executor.under_way:
            trigger = Trigger.FINISH if rematch is None else Trigger.DEMAND
            placement = await bind_pending(binding_parts)
            outcome = await run_cycle(parts, trigger, rematch)
            rematch = None if outcome.rematch is not None else rematch
            for line in _progress(placement, outcome):
                click.echo(line, err=to_stderr)
            failed += sum(move.state in _NOT_CARRIED_OUT for move in outcome.moves)
            _refuse_to_go_on(controller, outcome)
            if rematch is not None or executor.under_way:
                await controller.work_queue.next(1.0)
    finally:
        await _leave(controller)
    if failed:
        raise ClusterError(f"{failed} of {len(planned.plan.moves)} planned moves were not carried out")


def _refuse_to_go_on(controller: Controller, outcome: Outcome) -> None:
    brakes = controller.memory.cooldowns.brakes.held
    if brakes and not outcome.active.in_flight:
        raise ClusterError("; ".join(map(str, brakes)))
    if controller.store.health.error:
        store = controller.store
        raise StorageError(f"{store.place} cannot be written, so no more pods are evicted: {store.health.error}")


async def _leave(controller: Controller) -> None:
    """Give up what has not started when the command ends early, and record it."""
    executor, recorder = controller.executor, controller.recorder
    snapshot = controller.state.freeze(executor.active_moves())
    recorder.record_moves("", await executor.stop(snapshot.at, "cancelled: rematch plan --apply ended"), snapshot)
    await recorder.complete_plans()
    for move in executor.active_moves().in_flight:
        click.echo(f"{move.pod.key}: {move.state}; it is in the journal, and the controller goes on with it", err=True)


def _confirmation(plan: Plan) -> str:
    running = sum(move.source is not None for move in plan.moves)
    parts = [f"evict {running} pod(s) and bind their replacements"] if running else []
    if running < len(plan.moves):
        parts.append(f"bind {len(plan.moves) - running} pending pod(s)")
    if plan.dumped:
        parts.append(f"evict {len(plan.dumped)} pod(s) that get no node")
    return " and ".join(parts).capitalize() + " as planned?"


def _progress(placement: Placement | None, outcome: Outcome) -> Iterator[str]:
    for one in placement.bound if placement is not None else ():
        yield f"{one.pod.key}: {one.answer.outcome} ({one.move.target}) {one.answer.message}".rstrip()
    for move in outcome.moves:
        if move.state is not MoveState.PLANNED:
            yield f"{move.pod.key}: {move.state} {move.outcome}".rstrip()
