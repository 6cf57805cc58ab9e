"""Whatever happens on the way: in the end the mirror holds what the server holds."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from reactor.cluster.kinds import Kind
from reactor.cluster.mirror import ClusterMirror
from reactor.cluster.reads import ClusterReader
from reactor.cluster.records import Record
from reactor.cluster.watch import Pace, Watcher
from tests.reactor.cluster.faulty import FaultyConnection
from tests.reactor.cluster.helpers import FakeClock, Reports
from tests.reactor.cluster.misbehaving import Fault
from tests.reactor.cluster.truth import Truth

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("bookmark"), st.just("")),
        st.tuples(st.just("compact"), st.just("")),
        st.tuples(st.just("breathe"), st.just("")),
        st.tuples(st.just("fault"), st.sampled_from([fault.name for fault in Fault])),
    ),
    max_size=40,
)


async def _take(step: tuple[str, str], connection: FaultyConnection) -> None:
    what, name = step
    match what:
        case "put":
            connection.truth.put(name)
        case "delete":
            connection.truth.delete(name)
        case "bookmark":
            connection.truth.bookmark()
        case "compact":
            connection.truth.compact()
        case "fault":
            connection.faults.append(Fault[name])
        case "breathe":
            for _ in range(20):
                await asyncio.sleep(0)


async def _replay(steps: list[tuple[str, str]], page_size: int) -> None:
    truth, clock, reports = Truth(), FakeClock(), Reports()
    connection = FaultyConnection(truth, page_size=page_size)
    heard: dict[str, str] = {}

    def listen(_kind: Kind, old: Record | None, new: Record | None) -> None:
        if old is not None:
            assert heard.pop(old.uid) == old.resource_version
        if new is not None:
            heard[new.uid] = new.resource_version

    mirror = ClusterMirror({Kind.PODS}, listen)
    watcher = Watcher(Kind.PODS, ClusterReader(connection), mirror, reports, Pace(clock))
    task = asyncio.create_task(watcher.run())
    for step in steps:
        await _take(step, connection)
    for spin in range(4000):
        await asyncio.sleep(0)
        if spin % 20 == 0:
            truth.wake()
        if not connection.faults and mirror.synced and heard == truth.versions():
            break
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert {uid: record.resource_version for uid, record in mirror.records(Kind.PODS).items()} == truth.versions()
    assert heard == truth.versions()
    assert {pod.uid for name in truth.objects if (pod := mirror.pod_named("default", name))} == set(truth.versions())


@settings(max_examples=200, deadline=None)
@given(STEPS, st.integers(1, 4))
def test_after_any_faults_the_mirror_equals_the_server(steps: list[tuple[str, str]], page_size: int) -> None:
    asyncio.run(_replay(steps, page_size))
