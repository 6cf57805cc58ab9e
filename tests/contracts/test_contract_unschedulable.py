"""What node autoscalers look at: PodScheduled=False, reason Unschedulable, on a pod without a node.

cluster-autoscaler lists pods with that condition, status and reason and without `spec.nodeName`; Karpenter provisions
for pods without a node that have a PodScheduled condition with reason Unschedulable.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from loadtests.embedded.plain_client import PlainClient
from loadtests.embedded.resources import Json
from reactor.clock import SystemClock
from reactor.cluster.api import Connection
from reactor.cluster.kinds import Kind
from reactor.cluster.reads import ClusterReader
from reactor.cluster.records import Pod
from reactor.cluster.writes import Binding, ClusterWriter
from reactor.execution.unschedulable import UNSCHEDULABLE

MakePod = Callable[..., Awaitable[str]]
Connect = Callable[[], Awaitable[Connection]]


def seen_by_cluster_autoscaler(pod: Json) -> bool:
    if pod["spec"].get("nodeName"):
        return False
    conditions = [each for each in pod["status"].get("conditions", []) if each["type"] == "PodScheduled"]
    return any(each["status"] == "False" and each["reason"] == "Unschedulable" for each in conditions)


def seen_by_karpenter(pod: Json) -> bool:
    failed = any(
        each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
        for each in pod["status"].get("conditions", [])
    )
    return failed and not pod["spec"].get("nodeName") and not pod["status"].get("nominatedNodeName")


async def _record(connection: Connection, name: str, namespace: str) -> Pod:
    page = await ClusterReader(connection).list_all(Kind.PODS)
    return next(
        record
        for record in page.records
        if isinstance(record, Pod) and (record.namespace, record.name) == (namespace, name)
    )


async def test_a_marked_pod_is_seen_until_it_is_bound(
    api: PlainClient, make_pod: MakePod, node: str, connect: Connect
) -> None:
    await make_pod("p")
    connection = await connect()
    writer = ClusterWriter(connection, SystemClock())
    pod = await _record(connection, "p", api.namespace)
    assert not seen_by_cluster_autoscaler((await api.get(api.here("pods", "p"))).body)

    assert await writer.mark_unschedulable(pod, UNSCHEDULABLE, "no node has 8 cores free") == ""

    marked = (await api.get(api.here("pods", "p"))).body
    assert seen_by_cluster_autoscaler(marked)
    assert seen_by_karpenter(marked)
    assert marked["status"]["phase"] == "Pending"
    assert (await writer.bind(pod, node)).outcome is Binding.BOUND
    bound = (await api.get(api.here("pods", "p"))).body
    assert [(each["type"], each["status"]) for each in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    assert not seen_by_cluster_autoscaler(bound)
    assert not seen_by_karpenter(bound)


async def test_a_late_mark_changes_nothing(api: PlainClient, make_pod: MakePod, node: str, connect: Connect) -> None:
    await make_pod("p")
    connection = await connect()
    writer = ClusterWriter(connection, SystemClock())
    pod = await _record(connection, "p", api.namespace)
    await writer.bind(pod, node)

    assert (await writer.mark_unschedulable(pod, UNSCHEDULABLE, "late")).startswith("409: ")

    bound = (await api.get(api.here("pods", "p"))).body
    assert [(each["type"], each["status"]) for each in bound["status"]["conditions"]] == [("PodScheduled", "True")]
