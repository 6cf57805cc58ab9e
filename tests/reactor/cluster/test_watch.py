from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from reactor.cluster.api import Connection
from reactor.cluster.connection import KubernetesConnection
from reactor.cluster.kinds import Kind
from reactor.cluster.mirror import ClusterMirror
from reactor.cluster.reads import Bookmark, Change, ClusterReader, Page
from reactor.cluster.watch import Watcher, WatchTiming
from reactor.errors import ClusterError, Expired, Forbidden, NotFound, Throttled
from tests.reactor.cluster.faulty import FaultyConnection
from tests.reactor.cluster.helpers import FakeClock, Reports, eventually
from tests.reactor.cluster.misbehaving import Fault, MisbehavingServer
from tests.reactor.cluster.truth import Truth


class Setting:
    """One watcher of pods with its mirror."""

    def __init__(self, connection: Connection, clock: FakeClock, reports: Reports, grace: float = 15.0) -> None:
        self.clock = clock
        self.reports = reports
        self.mirror = ClusterMirror({Kind.PODS}, lambda _kind, _old, _new: None)
        timing = WatchTiming(clock, draw=lambda: 0.5, watch=1.0 if grace < 1 else 60.0, grace=grace)
        self.watcher = Watcher(Kind.PODS, ClusterReader(connection), self.mirror, reports, timing)

    def versions(self) -> dict[str, str]:
        return {uid: record.resource_version for uid, record in self.mirror.records(Kind.PODS).items()}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watcher.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_first_the_list_then_what_changes(
    server: MisbehavingServer, connection: KubernetesConnection, clock: FakeClock, reports: Reports
) -> None:
    server.truth.put("a")
    server.truth.put("b")
    setting = Setting(connection, clock, reports)
    assert setting.mirror.missing
    async with setting.running():
        await setting.mirror.until_synced()
        assert setting.watcher.state.lists == 1
        server.truth.put("a", spec={"nodeName": "n"})
        server.truth.delete("b")
        server.truth.put("c")
        await eventually(lambda: setting.versions() == server.truth.versions())
    assert len(server.lists()) == 1
    assert not reports.troubles


@pytest.mark.parametrize(
    "fault",
    [
        Fault.THROTTLED,
        Fault.BROKEN,
        Fault.UNAVAILABLE,
        Fault.RESET_IN_STREAM,
        Fault.ERROR_IN_STREAM,
        Fault.CUT_LINE,
        Fault.GARBAGE_LINE,
        Fault.CLOSED_AT_ONCE,
        Fault.MALFORMED_OBJECT,
        Fault.SLOW_FIRST_BYTE,
    ],
    ids=lambda fault: fault.name,
)
async def test_a_watch_resumes_where_it_was_without_a_new_list(
    server: MisbehavingServer, connection: KubernetesConnection, clock: FakeClock, reports: Reports, fault: Fault
) -> None:
    server.truth.put("a")
    server.watch_faults.append(fault)
    setting = Setting(connection, clock, reports)
    async with setting.running():
        await setting.mirror.until_synced()
        server.truth.put("b")
        await eventually(lambda: setting.versions() == server.truth.versions())
    assert len(server.lists()) == 1
    if fault is Fault.MALFORMED_OBJECT:
        assert [malformed.path for malformed in reports.objects] == ["spec"]


@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.SILENT_IN_STREAM], ids=lambda fault: fault.name)
async def test_a_half_open_watch_is_replaced(
    server: MisbehavingServer, connection: KubernetesConnection, clock: FakeClock, reports: Reports, fault: Fault
) -> None:
    server.watch_faults.append(fault)
    setting = Setting(connection, clock, reports, grace=-1.4)  # 1.5 s requested, silence after 0.1 s is too long
    async with setting.running():
        await eventually(lambda: len(server.watches()) >= 2)
        server.truth.put("late")
        await eventually(lambda: setting.versions() == server.truth.versions())
    assert "silent" in str(reports.troubles[0][0])


@pytest.mark.parametrize("fault", [Fault.EXPIRED, Fault.EXPIRED_IN_STREAM], ids=lambda fault: fault.name)
async def test_410_lists_again_and_finds_what_went_meanwhile(
    server: MisbehavingServer, connection: KubernetesConnection, clock: FakeClock, reports: Reports, fault: Fault
) -> None:
    server.truth.put("a")
    server.truth.put("b")
    server.watch_faults.append(fault)
    setting = Setting(connection, clock, reports)
    async with setting.running():
        await eventually(lambda: len(server.lists()) == 2)
        server.truth.delete("a")
        await eventually(lambda: setting.versions() == server.truth.versions())
    assert isinstance(reports.troubles[0][0], Expired)
    assert setting.watcher.state.lists == 2


async def test_retry_after_is_honoured(
    server: MisbehavingServer, connection: KubernetesConnection, clock: FakeClock, reports: Reports
) -> None:
    server.list_faults.append(Fault.THROTTLED)
    setting = Setting(connection, clock, reports)
    async with setting.running():
        await setting.mirror.until_synced()
    assert isinstance(reports.troubles[0][0], Throttled)
    assert clock.slept[0] == 7.0


async def test_bookmarks_move_the_version_that_a_watch_resumes_from(
    server: MisbehavingServer, connection: KubernetesConnection, clock: FakeClock, reports: Reports
) -> None:
    server.close_after_lines = True
    setting = Setting(connection, clock, reports)
    async with setting.running():
        await eventually(lambda: bool(server.watches()))
        for _ in range(5):
            server.truth.bookmark()
        await eventually(lambda: server.watches()[-1].query["resourceVersion"] == "6")
        server.truth.compact()
        server.truth.bookmark()
        await eventually(lambda: server.watches()[-1].query["resourceVersion"] == "7")
    assert len(server.lists()) == 1, "without the bookmarks the compaction would have cost a list"


async def test_watches_that_close_at_once_are_not_a_hot_loop(clock: FakeClock, reports: Reports) -> None:
    connection = FaultyConnection(Truth())
    connection.faults.extend([Fault.SLOW_FIRST_BYTE] + [Fault.CLOSED_AT_ONCE] * 200)
    setting = Setting(connection, clock, reports)
    async with setting.running():
        await eventually(lambda: len(clock.slept) >= 100)
    assert clock.slept[:4] == pytest.approx([0.15, 0.3, 0.6, 1.2])
    assert clock.slept[20:100] == [22.5] * 80
    assert not reports.troubles, "an end is not an error"


async def test_expiry_again_and_again_is_not_a_hot_loop(clock: FakeClock, reports: Reports) -> None:
    connection = FaultyConnection(Truth())
    connection.faults.extend([Fault.SLOW_FIRST_BYTE, Fault.EXPIRED_IN_STREAM] * 50)
    setting = Setting(connection, clock, reports)
    async with setting.running():
        await eventually(lambda: len(clock.slept) >= 20)
    assert sum(clock.slept[:20]) > 250


async def test_failures_back_off_to_a_cap_and_success_resets(clock: FakeClock, reports: Reports) -> None:
    truth = Truth()
    connection = FaultyConnection(truth)
    connection.faults.extend([Fault.RESET] * 12)
    setting = Setting(connection, clock, reports)
    async with setting.running():
        await setting.mirror.until_synced()
        delays = [delay for _, delay in reports.troubles]
        assert delays[:3] == pytest.approx([0.15, 0.3, 0.6])
        assert delays[-1] == 22.5
        truth.put("a")
        await eventually(lambda: setting.versions() == truth.versions())
        assert setting.watcher.state.last_error == ""
        connection.faults.append(Fault.RESET_IN_STREAM)
        truth.put("b")
        await eventually(lambda: setting.versions() == truth.versions())
    assert len(delays) == 12
    assert reports.troubles[12][1] == pytest.approx(0.15)


async def test_the_age_of_a_watch_grows_while_the_server_does_not_answer(clock: FakeClock, reports: Reports) -> None:
    truth = Truth()
    connection = FaultyConnection(truth)
    connection.faults.extend([Fault.SLOW_FIRST_BYTE] + [Fault.RESET] * 1000)
    setting = Setting(connection, clock, reports)
    async with setting.running():
        await setting.mirror.until_synced()
        await eventually(lambda: setting.watcher.state.age > 300)
        connection.faults.clear()
        truth.put("a")
        await eventually(lambda: setting.watcher.state.age == 0)


async def test_a_version_that_the_server_cannot_serve_is_given_up(clock: FakeClock, reports: Reports) -> None:
    truth = Truth()
    connection = FaultyConnection(truth)
    connection.faults.extend([Fault.SLOW_FIRST_BYTE] + [Fault.BROKEN] * 3)
    setting = Setting(connection, clock, reports)
    async with setting.running():
        await eventually(lambda: setting.watcher.state.lists == 2)
        await eventually(lambda: not connection.faults)
    assert len(reports.troubles) == 3


async def test_an_outage_of_the_network_costs_no_list(clock: FakeClock, reports: Reports) -> None:
    truth = Truth()
    connection = FaultyConnection(truth)
    connection.faults.extend([Fault.SLOW_FIRST_BYTE] + [Fault.RESET] * 10)
    setting = Setting(connection, clock, reports)
    async with setting.running():
        await eventually(lambda: not connection.faults)
        truth.put("a")
        await eventually(lambda: setting.versions() == truth.versions())
    assert setting.watcher.state.lists == 1


async def test_what_is_known_of_an_unreadable_object_stays(clock: FakeClock, reports: Reports) -> None:
    truth = Truth()
    truth.put("a")
    truth.put("b")
    connection = FaultyConnection(truth)
    connection.faults.extend([Fault.SLOW_FIRST_BYTE, Fault.EXPIRED])
    setting = Setting(connection, clock, reports)
    async with setting.running():
        await setting.mirror.until_synced()
        truth.put("a", status={"phase": 7})
        truth.delete("b")
        await eventually(lambda: setting.watcher.state.lists == 2)
    assert setting.versions() == {"uid-a": "2"}
    assert reports.objects


class Answers:
    """A source whose lists fail until `allowed`."""

    def __init__(self, error: ClusterError) -> None:
        self.error = error
        self.allowed = False
        self.lists = 0

    async def list_all(self, _kind: Kind) -> Page:
        self.lists += 1
        if not self.allowed:
            raise self.error
        return Page([], (), "7")

    async def watch(
        self, _kind: Kind, _version: str, *, timeout: float, idle_timeout: float
    ) -> AsyncGenerator[Change, None]:
        await asyncio.sleep(3600 + timeout + idle_timeout)
        yield Bookmark("8")


@pytest.mark.parametrize(
    ("kind", "error", "unread"),
    [
        (Kind.HPAS, Forbidden("no", status=403), True),
        (Kind.RESOURCE_QUOTAS, Forbidden("no", status=403), True),
        (Kind.CSI_NODES, Forbidden("no", status=403), True),
        (Kind.VOLUME_ATTACHMENTS, NotFound("no such API", status=404), False),
    ],
)
async def test_an_optional_kind_that_cannot_be_read_holds_nothing_up(
    kind: Kind, error: ClusterError, unread: bool, clock: FakeClock, reports: Reports
) -> None:
    mirror = ClusterMirror({kind}, lambda _kind, _old, _new: None)
    source = Answers(error)
    watcher = Watcher(kind, source, mirror, reports, WatchTiming(clock))
    task = asyncio.create_task(watcher.run())
    await mirror.until_synced()
    await eventually(lambda: source.lists > 2)
    assert (kind in mirror.freeze(0.0).unread) is unread
    assert not watcher.state.denied
    assert "goes on without it" in watcher.state.last_error
    assert len(reports.troubles) == 1, "said once, however often it is tried"
    source.allowed = True
    await eventually(lambda: watcher.state.lists == 1)
    assert not watcher.state.last_error
    assert not mirror.freeze(0.0).unread
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_optional_kind_that_was_refused_once_is_read_again_within_seconds(
    clock: FakeClock, reports: Reports
) -> None:
    """An API server that has just started refuses everything until it has read the roles."""
    mirror = ClusterMirror({Kind.HPAS}, lambda _kind, _old, _new: None)
    source = Answers(Forbidden("no role yet", status=403))
    watcher = Watcher(Kind.HPAS, source, mirror, reports, WatchTiming(clock))
    began = clock.monotonic()
    task = asyncio.create_task(watcher.run())
    await mirror.until_synced()
    source.allowed = True
    await eventually(lambda: watcher.state.lists == 1)
    assert clock.monotonic() - began < 5
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(("kind", "status"), [(Kind.PODS, 403), (Kind.HPAS, 401)])
async def test_a_needed_kind_and_rejected_credentials_are_waited_for(
    kind: Kind, status: int, clock: FakeClock, reports: Reports
) -> None:
    mirror = ClusterMirror({kind}, lambda _kind, _old, _new: None)
    source = Answers(Forbidden("no", status=status))
    watcher = Watcher(kind, source, mirror, reports, WatchTiming(clock))
    task = asyncio.create_task(watcher.run())
    await eventually(lambda: source.lists > 2)
    assert mirror.missing == {kind}
    assert watcher.state.denied
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
