"""This version's controller in this process, on the real nodes: its every outcome can be counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from loadtests.nodes.lab import Lab
from reactor.app import LiveController, Options, open_controller
from reactor.cluster.kinds import Kind
from reactor.record.recorder import Listener
from reactor.settings.load import dump_settings
from reactor.settings.model import Settings
from reactor.state.moves import ActiveMoves

_SYNC_SECONDS = 60.0


def fresh_folder(lab: Lab) -> Path:
    """For settings, store and log of one controller after the other."""
    folder = lab.folder / "controller"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    return folder


@asynccontextmanager
async def live_controller(
    lab: Lab, settings: Settings, listener: Callable[[LiveController], Listener]
) -> AsyncIterator[LiveController]:
    """It has seen the cluster, measured every node, and knows nothing of an earlier controller's history."""
    folder = fresh_folder(lab)
    written = folder / "settings.yaml"
    written.write_text(dump_settings(settings))
    options = Options(folder / "rematch.db", str(lab.plane.kubeconfig), settings_file=written)
    async with open_controller(options) as live:
        live.controller.recorder.listen(listener(live))
        job = asyncio.create_task(live.run())
        try:
            await _measured(live)
            yield live
            if job.done():
                job.result()
        finally:
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)


async def _measured(live: LiveController) -> None:
    state = live.controller.state
    async with asyncio.timeout(_SYNC_SECONDS):
        while True:
            if state.synced:
                view = state.freeze(ActiveMoves())
                if all(view.usage.node_usage(name).known for name in state.mirror.records(Kind.NODES)):
                    return
            await asyncio.sleep(0.2)
