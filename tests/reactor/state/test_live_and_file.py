"""The same objects, read from a live cluster and from files, give the same evidence."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from loadtests.embedded.resources import EVENTS, Json
from reactor.cluster.connection import open_connection
from reactor.cluster.dump import read_dump
from reactor.cluster.kinds import CLUSTER_KINDS
from reactor.cluster.reads import ClusterReader
from reactor.signals.probes import ProbeEvidence
from reactor.state.from_dump import snapshot_from_dump
from reactor.state.live_state import State
from reactor.work_queue import WorkQueue
from tests.support.clock import VirtualClock
from tests.support.cluster import make_settings
from tests.support.dump import stamp
from tests.support.shop import Shop, open_shop

Evidence = dict[str, ProbeEvidence | None]
BACK_OFF = {"reason": "BackOff", "message": "Back-off restarting failed container"}
OF_THE_SCHEDULER = {"reason": "FailedScheduling", "message": "0/2 nodes", "source": {"component": "default-scheduler"}}
OF_A_READINESS_PROBE = {"reason": "Unhealthy", "message": "Readiness probe failed: EOF"}


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with open_shop() as opened:
        yield opened


def warn(shop: Shop, app: str, count: int, **fields: object) -> None:
    meta, now = shop.pods(app)[0]["metadata"], stamp(shop.clock.now())
    event: Json = {
        "metadata": {"name": f"{meta['name']}.{fields['reason']}".lower(), "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": meta["name"], "uid": meta["uid"]},
        "type": "Warning",
        "count": count,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": "kubelet"},
    }
    shop.cluster.api.create(EVENTS, event | fields)


async def read_both(shop: Shop, folder: Path) -> tuple[Evidence, Evidence]:
    """The evidence of every pod: live by lists into the mirror, and by a file with the same lists."""
    now, settings = shop.clock.now() + 5.0, make_settings()
    clock = VirtualClock(now)
    state = State(CLUSTER_KINDS, clock, WorkQueue(clock), lambda: settings)
    connection = await open_connection(str(shop.cluster.kubeconfig(folder / "kubeconfig")), None)
    try:
        reader = ClusterReader(connection)
        for kind in CLUSTER_KINDS:
            (folder / f"{kind}.json").write_bytes(await reader.get_raw(kind.path()))
            state.mirror.replaced(kind, (await reader.list_all(kind)).records)
    finally:
        await connection.close()
    assert state.synced
    dump = read_dump([str(folder / f"{kind}.json") for kind in CLUSTER_KINDS])
    uids = [pod["metadata"]["uid"] for app in ("web", "db") for pod in shop.pods(app)]
    file = snapshot_from_dump(dump, settings, now=now).evidence
    return {uid: state.probes.evidence(uid, now) for uid in uids}, {uid: file.get(uid) for uid in uids}


async def test_other_warnings_of_the_kubelet_silence_events_live_as_from_a_file(shop: Shop, tmp_path: Path) -> None:
    shop.fail("web", 3)
    warn(shop, "web", 30, **BACK_OFF)
    warn(shop, "db", 40, **OF_THE_SCHEDULER)

    live, file = await read_both(shop, tmp_path)

    assert live == file
    web, db = live.values()
    assert web is not None
    assert db is not None
    assert (web.events_silenced, web.failures_by_events) == (True, 3.0)
    assert not db.events_silenced, "the scheduler's Warnings have a budget of their own"


async def test_readiness_failures_and_events_of_other_kinds_count_alike(shop: Shop, tmp_path: Path) -> None:
    shop.fail("web", 20)
    warn(shop, "web", 6, **OF_A_READINESS_PROBE)
    about = {"kind": "ReplicaSet", "namespace": "default", "name": "db", "uid": shop.pods("db")[0]["metadata"]["uid"]}
    warn(shop, "db", 30, involvedObject=about, **BACK_OFF)

    live, file = await read_both(shop, tmp_path)

    assert live == file
    assert [found.events_silenced for found in live.values() if found] == [True, False]
