"""`rematch plan` on the live cluster: a plan, and with --apply its execution by the stages of the controller."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from matching.plan import Plan
from reactor.app import Controller, LiveController, Options, open_controller
from reactor.cli.compare import compare, render_comparison
from reactor.cli.plan_output import render
from reactor.cli.planning import Planned, PlanRequest, make_plan, requested_settings
from reactor.cluster.api import ApiRequest
from reactor.cycle import run_cycle
from reactor.decision.decide import Trigger
from reactor.errors import ClusterError
from reactor.execution.cycle_outcome import Outcome
from reactor.record.logs import configure_logs
from reactor.settings.model import Mode
from reactor.state.moves import MoveState
from reactor.state.snapshot import Needs

SYNC_DEADLINE = 60.0
ANSWER_DEADLINE = 10.0
"""Report an API server that does not answer at once, not after the watches have tried for a minute."""


async def plan_live(request: PlanRequest) -> None:
    configure_logs(level="error")
    with tempfile.TemporaryDirectory(prefix="rematch-plan-") as folder:
        options = Options(
            store=request.store or Path(folder, "plan.db"),
            kubeconfig=request.kubeconfig,
            context=request.context,
            settings_file=request.settings_file,
            dry_run=not request.apply,
            mode=Mode.ACT if request.apply else Mode.OBSERVE,
        )
        async with open_controller(options) as live:
            await live.connection.send(ApiRequest("GET", "/version", deadline=ANSWER_DEADLINE))
            await _with_background(live, request)


async def _with_background(live: LiveController, request: PlanRequest) -> None:
    """Watch the cluster as long as the command runs."""
    background = asyncio.create_task(live.background())
    work = asyncio.create_task(_work(live, request))
    try:
        await asyncio.wait({background, work}, return_when=asyncio.FIRST_COMPLETED)
        if background.done():
            background.result()
        await work
    finally:
        for task in (work, background):
            task.cancel()
        await asyncio.gather(work, background, return_exceptions=True)


async def _work(live: LiveController, request: PlanRequest) -> None:
    await _wait_until_synced(live)
    await live.metrics.once()
    controller, settings = live.controller, requested_settings(request)
    needs = Needs(request.needs) if request.needs else Needs.METRICS
    snapshot = controller.state.freeze(controller.executor.active_moves(), needs=needs)
    if request.compare:
        click.echo(render_comparison(compare(snapshot, settings), request.output))
        return
    planned = make_plan(snapshot, settings)
    click.echo(render(planned.shown, request.output))
    if not request.apply or not (planned.plan.moves or planned.plan.dumped):
        return
    if not request.yes:
        click.confirm(_confirmation(planned.plan), abort=True, err=True)
    await _carry_out(controller, planned, to_stderr=request.output in ("json", "yaml"))


def _confirmation(plan: Plan) -> str:
    running = sum(move.source is not None for move in plan.moves)
    parts = [f"evict {running} pod(s) and bind their replacements"] if running else []
    if running < len(plan.moves):
        parts.append(f"bind {len(plan.moves) - running} pending pod(s)")
    if plan.dumped:
        parts.append(f"evict {len(plan.dumped)} pod(s) that get no node")
    return " and ".join(parts).capitalize() + " as planned?"


async def _wait_until_synced(live: LiveController) -> None:
    try:
        async with asyncio.timeout(SYNC_DEADLINE):
            await live.controller.state.until_synced()
    except TimeoutError as error:
        broken = [f"{state.kind.value}: {state.last_error}" for state in live.watch.states if state.last_error]
        first = f"; {broken[0]}" if broken else ""
        raise ClusterError(f"not every kind could be listed within {SYNC_DEADLINE:g} s{first}") from error


async def _carry_out(controller: Controller, planned: Planned, *, to_stderr: bool) -> None:
    """Run cycles until the last move has ended. A late replacement ends the command, too.

    `to_stderr`: print the progress to standard error, because a program reads the plan from standard output.
    """
    executor = controller.executor
    executor.adopt(planned.plan, secrets.token_hex(6), planned.snapshot)
    while True:
        outcome = await run_cycle(controller.parts, Trigger.FINISH)
        for line in _progress(outcome):
            click.echo(line, err=to_stderr)
        if outcome.active.halted:
            raise ClusterError(outcome.active.halted)
        if not executor.busy:
            return
        await controller.work_queue.next(1.0)


def _progress(outcome: Outcome) -> Iterator[str]:
    for one in outcome.placement.bound if outcome.placement else ():
        yield f"{one.pod.key}: {one.answer.outcome} ({one.move.target}) {one.answer.message}".rstrip()
    for move in outcome.moves:
        if move.state is not MoveState.PLANNED:
            yield f"{move.pod.key}: {move.state} {move.outcome}".rstrip()
