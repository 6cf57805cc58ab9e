"""`rematch release`: before an uninstallation, end or take back the moves in flight and leave nothing behind."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from reactor.app import LiveController, Options, open_controller
from reactor.background.carry_out import carry_out
from reactor.cli.requests import ask_and_show
from reactor.cluster.kinds import ObjectName
from reactor.cluster.requests import Action, RequestObjects, RequestSpec
from reactor.errors import ClusterError, Conflict, NotFound
from reactor.execution.asking import controller_leads
from reactor.execution.cluster_journal import StoredJournal
from reactor.execution.cycle_outcome import Outcome
from reactor.record.logs import configure_logs
from reactor.settings.model import Mode

_POLL_SECONDS = 0.5
_REASON = "rematch release: Rematch is being uninstalled"


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    configmap: ObjectName | None
    namespace: str
    timeout: float
    kubeconfig: str | None
    context: str | None


def release(options: ReleaseOptions) -> None:
    configure_logs(level="warning")
    asyncio.run(_release(options))


async def _release(options: ReleaseOptions) -> None:
    with tempfile.TemporaryDirectory(prefix="rematch-release-") as folder:
        start = Options(
            Path(folder, "release.db"),
            options.kubeconfig,
            options.context,
            config_map=options.configmap,
            namespace=options.namespace,
            mode=Mode.BIND,
        )
        async with open_controller(start) as live:
            try:
                async with asyncio.timeout(options.timeout):
                    await _end_moves(live)
            except TimeoutError:
                left = len(await StoredJournal(live.connection, live.namespace).moves())
                why = live.controller.acting.journal_problem or f"kubectl get moves -n {live.namespace}"
                text = f"{left} moves have not ended within {options.timeout:g} s, nothing was deleted: {why}"
                raise ClusterError(text) from None
            await StoredJournal(live.connection, live.namespace).delete_state()
            await _delete_requests(RequestObjects(live.connection, live.namespace))
    click.echo(f"nothing of Rematch is under way; its journal in {live.namespace} is deleted")


async def _end_moves(live: LiveController) -> None:
    """By the controller that leads, paused for good, else by this process."""
    clock = live.controller.clock
    leader = await controller_leads(live.connection, live.namespace, clock)
    if not leader:
        await _end_them_here(live)
        return
    click.echo(f"{leader} leads: it is paused and ends its moves")
    await ask_and_show(live.connection, live.namespace, RequestSpec(Action.PAUSE, _REASON), clock)
    while await StoredJournal(live.connection, live.namespace).moves():
        await clock.sleep(_POLL_SECONDS)


async def _end_them_here(live: LiveController) -> None:
    tasks = [asyncio.create_task(live.connect()), asyncio.create_task(live.lead())]
    controller = live.controller
    try:
        await controller.state.until_synced()
        while controller.acting.journal_problem:
            await controller.clock.sleep(_POLL_SECONDS)
        await carry_out(controller.parts, None, controller.clock, _show, wait_for_late=True)
        await controller.executor.forget_finished()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await live.step_down()


def _show(outcome: Outcome) -> None:
    for move in outcome.moves:
        click.echo(f"{move.pod.key}: {move.state} {move.outcome}".rstrip())


async def _delete_requests(objects: RequestObjects) -> None:
    with suppress(NotFound):
        for request in await objects.list_all():
            with suppress(Conflict):
                await objects.delete(request)
