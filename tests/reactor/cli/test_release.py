"""Nothing is left behind: `rematch release` before an uninstallation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from loadtests.embedded.resources import CONFIGMAPS, LEASES, MOVES, REQUESTS
from reactor.app import Options, open_controller
from reactor.cli.release import ReleaseOptions, _release
from reactor.cluster.connection import open_connection
from reactor.errors import ClusterError
from reactor.execution.cluster_journal import ClusterJournal
from reactor.execution.journal import SavedState
from reactor.state.moves import Move, MoveState
from tests.support.clock import eventually
from tests.support.cluster import make_owner
from tests.support.cluster import make_pod as cluster_pod
from tests.support.moves import make_move
from tests.support.shop import Shop, open_shop


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with open_shop() as opened:
        yield opened


@pytest.fixture
def kubeconfig(shop: Shop, tmp_path: Path) -> str:
    return str(shop.cluster.kubeconfig(tmp_path / "kubeconfig"))


def options(kubeconfig: str, timeout: float = 30.0) -> ReleaseOptions:
    return ReleaseOptions(None, "rematch", timeout, kubeconfig, None)


def left(shop: Shop) -> list[str]:
    kinds = (MOVES, REQUESTS, LEASES, CONFIGMAPS)
    return [stored.key[1] for kind in kinds for stored in shop.cluster.store.all(kind, "rematch")]


async def _journaled(kubeconfig: str, move: Move) -> None:
    """As a controller leaves it that was killed."""
    connection = await open_connection(kubeconfig)
    try:
        journal = ClusterJournal(connection, "rematch", "killed")
        await journal.load()
        await journal.write(move)
        await journal.write_state(SavedState({"pause": '{"since": 1.0}'}))
    finally:
        await connection.close()


async def test_what_a_killed_controller_left_is_ended_and_deleted(shop: Shop, kubeconfig: str) -> None:
    gone = cluster_pod("gone", node="n1", owner=make_owner(name="gone"))
    await _journaled(kubeconfig, make_move(gone, "n2", MoveState.EVICTED, evicted=1.0))
    await _release(options(kubeconfig))
    assert left(shop) == []


async def test_a_controller_that_leads_is_paused_first(shop: Shop, kubeconfig: str, tmp_path: Path) -> None:
    async with open_controller(Options(tmp_path / "rematch.db", kubeconfig)) as live:
        job = asyncio.create_task(live.run())
        await eventually(lambda: live.controller.state.synced and not live.controller.acting.journal_problem)
        await _release(options(kubeconfig))
        assert "is being uninstalled" in live.controller.acting.hindrance
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
    assert left(shop) == []


async def test_a_journal_that_cannot_be_read_is_not_deleted(shop: Shop, kubeconfig: str) -> None:
    await _journaled(kubeconfig, make_move(cluster_pod("web", node="n1"), "n2", MoveState.EVICTED, evicted=1.0))
    (stored,) = shop.cluster.store.all(MOVES, "rematch")
    spec = stored.obj["spec"] | {"version": 9, "readableBy": 9}
    shop.cluster.api.update(MOVES, {**stored.obj, "spec": spec})
    with pytest.raises(ClusterError, match="1 moves have not ended within 2 s, nothing was deleted: Move move-web is"):
        await _release(options(kubeconfig, timeout=2.0))
    assert {"move-web", "rematch-state"} <= set(left(shop))
