"""What kubectl get prints."""

from __future__ import annotations

from typing import Any

import pytest

from loadtests.embedded.objects import timestamp
from loadtests.embedded.plain_client import PlainClient
from loadtests.embedded.resources import (
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NODES,
    PODDISRUPTIONBUDGETS,
    PODS,
    SERVICES,
    Resource,
)
from loadtests.embedded.server import EmbeddedCluster
from loadtests.embedded.tables import table_of
from loadtests.embedded.tables.cells import human_duration

NOW = 1_800_000_000.0
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def _row(resource: Resource, obj: dict[str, Any]) -> dict[str, Any]:
    obj.setdefault("metadata", {}).setdefault("name", "x")
    obj["metadata"].setdefault("creationTimestamp", timestamp(NOW - 90))
    table = table_of(resource, [obj], {}, NOW, "Metadata")
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][0]["cells"], strict=True))


def _pod(**status: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c"}, {"name": "d"}]}, "status": status}


def _container(ready: bool = False, restarts: int = 0, **state: Any) -> dict[str, Any]:
    return {"name": "c", "ready": ready, "restartCount": restarts, "state": state}


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (10_860, "3h1m"),
        (28_800, "8h"),
        (172_800, "2d"),
        (176_400, "2d1h"),
        (8 * 86_400, "8d"),
        (800 * 86_400, "2y70d"),
        (3000 * 86_400, "8y"),
    ],
)
def test_durations_are_told_as_kubectl_does(seconds: int, shown: str) -> None:
    assert human_duration(seconds) == shown


@pytest.mark.parametrize(
    ("status", "ready", "shown"),
    [
        ({"phase": "Pending"}, "0/2", "Pending"),
        ({"phase": "Running", "containerStatuses": [_container(True, running={})] * 2}, "2/2", "Running"),
        (
            {"phase": "Running", "containerStatuses": [_container(waiting={"reason": "CrashLoopBackOff"})]},
            "0/2",
            "CrashLoopBackOff",
        ),
        (
            {"phase": "Failed", "containerStatuses": [_container(terminated={"exitCode": 1, "reason": "Error"})]},
            "0/2",
            "Error",
        ),
        ({"phase": "Running", "containerStatuses": [_container(terminated={"exitCode": 137})]}, "0/2", "ExitCode:137"),
        ({"phase": "Failed", "reason": "Evicted"}, "0/2", "Evicted"),
        ({"phase": "Pending", "initContainerStatuses": [_container(running={})]}, "0/2", "Init:0/0"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "0/2",
            "SchedulingGated",
        ),
    ],
)
def test_the_status_of_a_pod(status: dict[str, Any], ready: str, shown: str) -> None:
    row = _row(PODS, _pod(**status))
    assert (row["Ready"], row["Status"]) == (ready, shown)


def test_a_pod_on_its_way_out_is_terminating() -> None:
    pod = _pod(phase="Running")
    pod["metadata"] = {"deletionTimestamp": timestamp(NOW)}
    assert _row(PODS, pod)["Status"] == "Terminating"


def test_restarts_tell_when() -> None:
    status = _container(True, 3, running={})
    status["lastState"] = {"terminated": {"finishedAt": timestamp(NOW - 65)}}
    assert _row(PODS, _pod(phase="Running", containerStatuses=[status]))["Restarts"] == "3 (65s ago)"


def test_the_wide_columns_of_a_pod() -> None:
    pod = _pod(phase="Running", podIPs=[{"ip": "10.0.0.1"}], conditions=[{"type": "g", "status": "True"}])
    pod["spec"]["nodeName"] = "n1"
    pod["spec"]["readinessGates"] = [{"conditionType": "g"}, {"conditionType": "h"}]
    row = _row(PODS, pod)
    assert [row[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")] == [
        "10.0.0.1",
        "n1",
        "<none>",
        "1/2",
    ]


def test_a_node() -> None:
    node = {
        "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}],
            "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6", "architecture": "amd64"},
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        },
    }
    row = _row(NODES, node)
    assert (row["Status"], row["Roles"], row["Age"]) == ("NotReady,SchedulingDisabled", "gpu,worker", "90s")
    assert (row["Internal-IP"], row["External-IP"], row["Kernel-Version"]) == ("127.0.0.1", "<none>", "6 (amd64)")


def test_an_event() -> None:
    event = {
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"},
        "firstTimestamp": timestamp(NOW - 60),
        "lastTimestamp": timestamp(NOW - 2),
        "type": "Warning",
        "reason": "Unhealthy",
        "message": " failed ",
        "count": 4,
        "source": {"component": "kubelet", "host": "n1"},
    }
    row = _row(EVENTS, event)
    assert [row[name] for name in ("Last Seen", "Type", "Reason", "Object", "Message", "First Seen", "Count")] == [
        "2s",
        "Warning",
        "Unhealthy",
        "pod/p",
        "failed",
        "60s",
        4,
    ]
    assert row["Source"] == "kubelet, n1"


def test_an_event_of_the_newer_form_counts_its_series() -> None:
    event = {"eventTime": timestamp(NOW - 9), "series": {"count": 7, "lastObservedTime": timestamp(NOW - 3)}}
    row = _row(EVENTS, event)
    assert (row["Last Seen"], row["First Seen"], row["Count"]) == ("3s", "9s", 7)


def test_workloads_and_budgets() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    row = _row(DEPLOYMENTS, {"spec": spec, "status": {"readyReplicas": 2, "updatedReplicas": 3}})
    assert (row["Ready"], row["Up-to-date"], row["Available"], row["Selector"]) == ("2/3", 3, 0, "app=a")
    row = _row(PODDISRUPTIONBUDGETS, {"spec": {"maxUnavailable": "25%"}, "status": {"disruptionsAllowed": 1}})
    assert (row["Min Available"], row["Max Unavailable"], row["Allowed Disruptions"]) == ("N/A", "25%", 1)
    done = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
    row = _row(JOBS, {"spec": {**spec, "completions": 1}, "status": done})
    assert (row["Status"], row["Completions"]) == ("Complete", "1/1")


def test_a_kind_without_a_table_of_its_own_shows_name_and_age() -> None:
    assert _row(SERVICES, {}) == {"Name": "x", "Age": "90s"}


async def test_tables_over_http(client: PlainClient, cluster: EmbeddedCluster) -> None:
    cluster.api.create(NODES, {"metadata": {"name": "n1"}})
    url = f"{client.url}/api/v1/nodes"
    async with client.session.get(url, headers={"Accept": TABLE}) as response:
        table = await response.json()
    assert table["kind"] == "Table"
    assert table["rows"][0]["cells"][:2] == ["n1", "Unknown"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    async with client.session.get(f"{url}/n1?includeObject=Object", headers={"Accept": TABLE}) as response:
        assert (await response.json())["rows"][0]["object"]["kind"] == "Node"
    async with client.session.get(f"{url}?watch=1&timeoutSeconds=1", headers={"Accept": TABLE}) as response:
        line = await response.content.readline()
    assert b'"type":"ADDED","object":{"kind":"Table"' in line


async def test_an_answer_we_cannot_give_is_not_acceptable(client: PlainClient) -> None:
    headers = {"Accept": "application/vnd.kubernetes.protobuf"}
    async with client.session.get(f"{client.url}/api/v1/nodes", headers=headers) as response:
        assert response.status == 406
        assert (await response.json())["reason"] == "NotAcceptable"
