"""A plan for the live cluster, and with --apply its execution by the controller's own stages."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import click

from reactor.cli.plan_output import Planned, render
from reactor.cli.planning_session import Request, make_plan, shown, wished_settings
from reactor.controller import Controller, Options, open_controller
from reactor.cycle import turn
from reactor.decision import Trigger
from reactor.errors import ClusterError
from reactor.execution.journal import Stage
from reactor.record.logs import configure_logs
from reactor.settings.model import Mode
from reactor.snapshot import Needs, Snapshot

SYNC_DEADLINE = 60.0


async def plan_live(request: Request) -> None:
    configure_logs(level="warning")
    with nullcontext(request.store) if request.store else _nowhere() as store:
        options = Options(
            store=Path(store),
            kubeconfig=request.kubeconfig,
            context=request.context,
            settings_file=request.settings_file,
            dry_run=not request.apply,
            mode=Mode.ACT if request.apply else Mode.OBSERVE,
        )
        async with open_controller(options) as controller:
            await _with_background(controller, request)


def _nowhere() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="rematch-plan-")


async def _with_background(controller: Controller, request: Request) -> None:
    """The watches run only as long as the command."""
    background = asyncio.create_task(controller.background())
    work = asyncio.create_task(_work(controller, request))
    try:
        await asyncio.wait({background, work}, return_when=asyncio.FIRST_COMPLETED)
        if background.done():
            background.result()
        await work
    finally:
        for task in (work, background):
            task.cancel()
        await asyncio.gather(work, background, return_exceptions=True)


async def _work(controller: Controller, request: Request) -> None:
    await _synced(controller)
    await controller.measuring.once()
    snapshot, settings = _snapshot(controller, request), wished_settings(request)
    if request.compare:
        click.echo(shown(snapshot, settings, request))
        return
    planned = make_plan(snapshot, settings)
    click.echo(render(planned, request.output))
    moves = [move for move in planned.plan.moves if move.source is not None]
    if not request.apply or not planned.plan.moves:
        return
    if not request.yes:
        click.confirm(f"Evict {len(moves)} pods and bind their replacements as planned?", abort=True, err=True)
    await _carry_out(controller, planned)


async def _synced(controller: Controller) -> None:
    try:
        async with asyncio.timeout(SYNC_DEADLINE):
            await controller.state.until_synced()
    except TimeoutError as error:
        broken = [f"{state.kind.value}: {state.last_error}" for state in controller.watch.states if state.last_error]
        raise ClusterError(f"not every kind could be listed within {SYNC_DEADLINE:g} s; {'; '.join(broken)}") from error


def _snapshot(controller: Controller, request: Request) -> Snapshot:
    snapshot = controller.state.freeze(controller.executor.ongoing())
    return replace(snapshot, needs=Needs(request.needs)) if request.needs else snapshot


async def _carry_out(controller: Controller, planned: Planned) -> None:
    """The controller's loop until the last move has ended; a late replacement ends the command, too."""
    executor = controller.executor
    executor.adopt(planned.plan, secrets.token_hex(6), planned.snapshot)
    while True:
        outcome = await turn(controller.stages, Trigger.FINISH)
        for run in outcome.moves:
            if run.stage is not Stage.PLANNED:
                click.echo(f"{run.move.pod}: {run.stage} {run.outcome}".rstrip())
        if executor.ongoing().halted:
            raise ClusterError(executor.ongoing().halted)
        if not executor.busy:
            return
        await controller.attention.next(1.0)
