"""The whole controller in this process, as `rematch run` makes it from the manifests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from reactor.app import LiveController, Options, open_controller
from reactor.cluster.kinds import ObjectName
from tests.support.account import Account


@asynccontextmanager
async def running_as(account: Account) -> AsyncIterator[LiveController]:
    """With the account's token file, and settings from the ConfigMap."""
    store = account.token_file.with_name("rematch.db")
    home = ObjectName("rematch", "rematch")
    async with open_controller(Options(store, str(account.kubeconfig), config_map=home)) as live:
        job = asyncio.create_task(live.run())
        try:
            yield live
        finally:
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)


def measured(live: LiveController) -> bool:
    """Everything is listed, and the use of every node is known."""
    state = live.controller.state
    if not state.synced:
        return False
    view = state.freeze(live.controller.executor.active_moves())
    return bool(view.cluster.nodes) and all(view.usage.node_usage(name).known for name in view.cluster.nodes)
