from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.cluster.api import ApiRequest, ApiResponse
from reactor.cluster.connection import KubernetesConnection
from reactor.cluster.kinds import CLUSTER_KINDS, Kind, ObjectName
from reactor.cluster.reads import PAGE_SIZE, Bookmark, Change, ClusterReader, Remove, Skipped, Unreadable, Upsert
from reactor.errors import Expired, Forbidden, NotFound, Unreachable
from tests.reactor.cluster.faulty import FaultyConnection
from tests.reactor.cluster.misbehaving import Fault, MisbehavingServer
from tests.reactor.cluster.truth import Truth, status_json


async def watch(reader: ClusterReader, version: str = "0") -> list[Change]:
    changes = reader.watch(Kind.PODS, version, timeout=60, idle_timeout=5)
    return [change async for change in changes]


async def test_a_list_is_read_page_by_page(server: MisbehavingServer, connection: KubernetesConnection) -> None:
    for number in range(PAGE_SIZE + 1):
        server.truth.put(f"pod-{number}")
    pages = [page async for page in ClusterReader(connection).list_pages(Kind.PODS)]
    assert [len(page.records) for page in pages] == [PAGE_SIZE, 1]
    assert [seen.query.get("continue") for seen in server.seen] == [None, str(PAGE_SIZE)]
    assert pages[-1].resource_version == str(server.truth.version)


async def test_410_between_pages_starts_again(server: MisbehavingServer, connection: KubernetesConnection) -> None:
    for number in range(PAGE_SIZE + 1):
        server.truth.put(f"pod-{number}")
    reader = ClusterReader(connection)
    await reader.list_all(Kind.PODS)
    server.seen.clear()
    server.list_faults.append(Fault.SLOW_FIRST_BYTE)
    server.list_faults.append(Fault.EXPIRED)
    page = await reader.list_all(Kind.PODS)
    assert len({record.uid for record in page.records}) == len(page.records) == PAGE_SIZE + 1
    assert [seen.query.get("continue") for seen in server.seen] == [None, "500", None, "500"]


async def test_pages_that_always_expire_are_given_up(
    server: MisbehavingServer, connection: KubernetesConnection
) -> None:
    server.list_faults.extend([Fault.EXPIRED] * 10)
    with pytest.raises(Expired):
        await ClusterReader(connection).list_all(Kind.PODS)
    assert len(server.seen) == 4


async def test_a_cut_page_is_unreadable(server: MisbehavingServer, connection: KubernetesConnection) -> None:
    server.truth.put("a")
    server.list_faults.append(Fault.CUT_BODY)
    with pytest.raises(Unreachable, match="not a list"):
        await ClusterReader(connection).list_all(Kind.PODS)


async def test_one_malformed_object_is_reported_and_the_rest_goes_on(
    server: MisbehavingServer, connection: KubernetesConnection
) -> None:
    server.truth.put("a")
    server.truth.put("b", spec={"nodeName": 5})
    server.truth.put("c")
    page = await ClusterReader(connection).list_all(Kind.PODS)
    assert [record.name for record in page.records] == ["a", "c"]
    [malformed] = page.malformed
    assert (malformed.key, malformed.path) == ("uid-b", "spec.nodeName")


async def test_all_sorts_of_changes(server: MisbehavingServer, connection: KubernetesConnection) -> None:
    server.truth.put("a")
    server.truth.put("a", spec={"nodeName": "n"})
    server.truth.bookmark()
    server.truth.delete("a")
    server.truth.put("odd", status={"phase": 1})
    server.close_after_lines = True
    added, changed, bookmark, removed, skipped = await watch(ClusterReader(connection))
    assert isinstance(added, Upsert)
    assert isinstance(changed, Upsert)
    assert (added.record.resource_version, changed.record.resource_version) == ("2", "3")
    assert bookmark == Bookmark("4")
    assert removed == Remove("uid-a", "5")
    assert isinstance(skipped, Skipped)
    assert skipped.malformed.path == "status.phase"
    [seen] = server.seen
    assert seen.query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "0",
        "timeoutSeconds": "60",
    }


async def test_a_deleted_object_needs_only_its_name(connection: KubernetesConnection) -> None:
    line = {"type": "DELETED", "object": {"metadata": {"uid": "u", "resourceVersion": "9"}, "spec": "nonsense"}}
    assert ClusterReader(connection)._change(Kind.PODS, msgspec.json.encode(line)) == Remove("u", "9")


async def test_types_of_lines_that_we_do_not_know_are_passed_over(connection: KubernetesConnection) -> None:
    assert ClusterReader(connection)._change(Kind.PODS, b'{"type":"NEW","object":{}}') is None


async def test_errors_within_the_stream(server: MisbehavingServer, connection: KubernetesConnection) -> None:
    server.watch_faults.extend([Fault.EXPIRED_IN_STREAM, Fault.ERROR_IN_STREAM, Fault.GARBAGE_LINE])
    reader = ClusterReader(connection)
    with pytest.raises(Expired, match="too old resource version"):
        await watch(reader)
    with pytest.raises(Unreachable, match="unable to decode"):
        await watch(reader)
    with pytest.raises(Unreadable, match="not a watch event"):
        await watch(reader)


def test_only_our_config_map_is_watched_and_only_events_of_pods() -> None:
    reader = ClusterReader(FaultyConnection(Truth()), ObjectName("rematch", "settings"))
    assert set(reader.kinds) == set(Kind)
    assert set(ClusterReader(FaultyConnection(Truth())).kinds) == set(CLUSTER_KINDS)
    assert reader._listings[Kind.CONFIG_MAPS].path == "/api/v1/namespaces/rematch/configmaps"
    assert reader._listings[Kind.CONFIG_MAPS].field_selector == "metadata.name=settings"
    assert reader._listings[Kind.EVENTS].field_selector == "involvedObject.kind=Pod"


async def test_raw_reads() -> None:
    connection = FaultyConnection(Truth())
    forbidden = ApiResponse(403, status_json(403, 'cannot list resource "pods"'))
    connection.answers = [ApiResponse(200, b"{}"), ApiResponse(404, b"404 page not found"), forbidden]
    assert await ClusterReader(connection).get_raw("/apis/metrics.k8s.io/v1beta1/pods") == b"{}"
    with pytest.raises(NotFound):
        await ClusterReader(connection).get_raw("/apis/metrics.k8s.io/v1beta1/pods")
    with pytest.raises(Forbidden, match=r'GET /apis/metrics.k8s.io/v1beta1/pods: 403 cannot list resource "pods"'):
        await ClusterReader(connection).get_raw("/apis/metrics.k8s.io/v1beta1/pods")
    assert connection.calls[0] == ApiRequest("GET", "/apis/metrics.k8s.io/v1beta1/pods", {}, deadline=30.0)


@given(st.integers(0, 30), st.integers(1, 7), st.lists(st.booleans(), max_size=3))
def test_paging_reads_each_object_once_whatever_the_sizes(count: int, size: int, expiries: list[bool]) -> None:
    async def check() -> None:
        truth = Truth()
        for number in range(count):
            truth.put(f"pod-{number}")
        connection = FaultyConnection(truth, page_size=size)
        connection.page_expiries = list(expiries)
        page = await ClusterReader(connection).list_all(Kind.PODS)
        assert sorted(record.uid for record in page.records) == sorted(truth.versions())
        assert page.resource_version == str(truth.version)

    asyncio.run(check())
