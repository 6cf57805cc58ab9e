"""`rematch doctor`: every finding says what is wrong and what to type, and nothing ends the examination."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from loadtests.chart import CHART
from reactor.cli.doctor.examination import examine
from reactor.cli.doctor.findings import Finding, State, render, report
from reactor.cli.doctor.installed import PROBE_PORT
from reactor.cluster.api import ApiRequest, ApiResponse, Query
from reactor.cluster.kinds import CLUSTER_KINDS, Kind
from reactor.cluster.rights import Scope, rights
from reactor.errors import Unreachable
from tests.support.clock import VirtualClock
from tests.support.command import command

Json = dict[str, Any]
NOW = 1_800_000_000.0
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
OWN = "/api/v1/namespaces/rematch"
METRICS = "rematch_synced 1\nrematch_storage_ok 1\nrematch_halted 0\n"


def at(seconds_ago: float) -> str:
    return datetime.fromtimestamp(NOW - seconds_ago, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def config_map(settings: str, metadata: Json) -> Json:
    return {"items": [{"metadata": metadata, "data": {"settings.yaml": settings}}]}


def healthy() -> dict[str, Any]:
    """Paths and what a cluster answers in which everything works."""
    policies = {
        f"{ADMISSION}/{kind}/{name}": {"metadata": {"name": name}}
        for name, kind in (
            ("rematch-hints", "mutating"),
            ("rematch-events", "validating"),
            ("rematch-own-rights", "validating"),
        )
        for kind in (f"{kind}admissionpolicies", f"{kind}admissionpolicybindings")
    }
    settings = "mode: act\nmanaged: {anySchedulerNamespaces: [shop]}\n"
    return {
        **{kind.path(): {"metadata": {"resourceVersion": "1"}, "items": []} for kind in CLUSTER_KINDS},
        **policies,
        "/version": {"gitVersion": "v1.36.3", "major": "1", "minor": "36"},
        ADMISSION: {"resources": [{"name": "mutatingadmissionpolicies"}, {"name": "validatingadmissionpolicies"}]},
        "/apis/rematch.io/v1alpha1": {"resources": [{"name": n} for n in ("moves", "requests", "placementhints")]},
        "/apis/rematch.io/v1alpha1/namespaces/rematch/moves": {"items": []},
        f"{OWN}/configmaps": config_map(settings, {"annotations": {"meta.helm.sh/release-name": "mine"}}),
        f"{OWN}/persistentvolumeclaims": {
            "items": [{"metadata": {"name": "rematch"}, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}]
        },
        f"{OWN}/pods": {"items": [{"metadata": {"name": "rematch-1"}, "status": {"phase": "Running"}}]},
        f"{OWN}/pods/rematch-1:{PROBE_PORT}/proxy/metrics": METRICS,
        "/apis/apps/v1/namespaces/rematch/deployments/rematch": {
            "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": "rematch:0.1.0"}]}}},
            "status": {"readyReplicas": 1},
        },
        "/apis/coordination.k8s.io/v1/namespaces/rematch/leases/rematch": {
            "spec": {"holderIdentity": "rematch-1", "leaseDurationSeconds": 15, "renewTime": at(2)}
        },
        "/apis/authentication.k8s.io/v1/selfsubjectreviews": {"status": {"userInfo": {"username": "admin"}}},
        "/apis/authorization.k8s.io/v1/subjectaccessreviews": {"status": {"allowed": True}},
        "/apis/metrics.k8s.io/v1beta1/pods": {"items": []},
        "/apis/metrics.k8s.io/v1beta1/nodes": {"items": []},
    }


class Scripted:
    """Implements api.Connection. An int is a refusal with that code, what is not named is a 404."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers
        self.asked: list[ApiRequest] = []

    async def send(self, request: ApiRequest) -> ApiResponse:
        self.asked.append(request)
        answer = self._answers.get(request.path, 404)
        if answer is None:
            raise Unreachable(f"{request.path}: no response within 10 s")
        if isinstance(answer, int):
            return ApiResponse(answer, json.dumps({"message": f"refused with {answer}"}).encode())
        return ApiResponse(200, answer.encode() if isinstance(answer, str) else json.dumps(answer).encode())

    @asynccontextmanager
    async def stream(self, path: str, query: Query, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        raise AssertionError("the doctor watches nothing")
        yield

    async def close(self) -> None: ...


async def examined(answers: dict[str, Any]) -> dict[str, Finding]:
    found = await examine(Scripted(answers), "https://c", "rematch", VirtualClock(NOW))
    return {finding.check: finding for finding in found.findings}


async def test_a_cluster_in_which_everything_works() -> None:
    found = await examine(Scripted(healthy()), "https://c", "rematch", VirtualClock(NOW))
    states = {finding.check: finding.state for finding in found.findings}
    assert found.ok
    assert {check for check, state in states.items() if state is not State.OK} == {"movable"}, "it has no pods"


async def test_before_anything_is_installed_one_command_installs_it() -> None:
    answers = healthy() | {f"{OWN}/configmaps": {"items": []}}
    found = await examined(answers)
    assert found["installed"].state is State.FAILED
    assert found["installed"].mend == (
        "helm upgrade --install rematch deploy/chart -n rematch --create-namespace"
        " --set image.repository=REGISTRY/rematch"
    )
    assert "CRDs" not in found
    assert {"Kubernetes", "metrics.k8s.io", "movable"} <= found.keys()
    assert CHART.is_dir()


@pytest.mark.parametrize(
    ("path", "answer", "check", "state", "text", "mend"),
    [
        (
            "/version",
            {"gitVersion": "v1.29.1", "minor": "29"},
            "Kubernetes",
            State.FAILED,
            "v1.29.1 is older than 1.30",
            "",
        ),
        (
            "/version",
            {"gitVersion": "v1.34.2", "minor": "34+"},
            "Kubernetes",
            State.WARNING,
            "MutatingAdmissionPolicy",
            "",
        ),
        ("/version", None, "Kubernetes", State.FAILED, "no response within 10 s", ""),
        (
            "/apis/rematch.io/v1alpha1",
            {"resources": [{"name": "moves"}]},
            "CRDs",
            State.FAILED,
            "not served: requests.rematch.io, placementhints.rematch.io",
            "helm upgrade mine deploy/chart -n rematch --reset-then-reuse-values",
        ),
        (
            f"{ADMISSION}/mutatingadmissionpolicybindings/rematch-hints",
            404,
            "steering",
            State.WARNING,
            "the MutatingAdmissionPolicyBinding rematch-hints is missing",
            "helm upgrade mine",
        ),
        (
            ADMISSION,
            {"resources": [{"name": "validatingadmissionpolicies"}]},
            "steering",
            State.WARNING,
            "does not serve MutatingAdmissionPolicy",
            "helm upgrade mine",
        ),
        (
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {"status": {"allowed": False}},
            "rights",
            State.FAILED,
            "list nodes (signals and state)",
            "helm upgrade mine",
        ),
        (
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            403,
            "rights",
            State.UNKNOWN,
            "subjectaccessreviews",
            "",
        ),
        ("/apis/apps/v1/namespaces/rematch/deployments/rematch", 404, "controller", State.FAILED, "neither", "helm"),
        ("/apis/coordination.k8s.io/v1/namespaces/rematch/leases/rematch", 404, "leader", State.WARNING, "nobody", ""),
        (
            "/apis/coordination.k8s.io/v1/namespaces/rematch/leases/rematch",
            {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": at(40)}},
            "leader",
            State.WARNING,
            "a renewed the Lease 40 s ago",
            "",
        ),
        (
            f"{OWN}/persistentvolumeclaims",
            {"items": [{"metadata": {"name": "rematch"}, "status": {"phase": "Pending"}}]},
            "volume",
            State.FAILED,
            "not bound: rematch",
            "kubectl -n rematch describe pvc rematch",
        ),
        (
            f"{OWN}/pods/rematch-1:{PROBE_PORT}/proxy/metrics",
            METRICS.replace("storage_ok 1", "storage_ok 0"),
            "running",
            State.FAILED,
            "its store takes no writes",
            "rematch status",
        ),
        (
            f"{OWN}/pods/rematch-1:{PROBE_PORT}/proxy/metrics",
            METRICS.replace("halted 0", "halted 1"),
            "running",
            State.FAILED,
            "a brake holds moves",
            "rematch status",
        ),
        (f"{OWN}/pods/rematch-1:{PROBE_PORT}/proxy/metrics", 503, "running", State.UNKNOWN, "refused with 503", ""),
        (
            "/apis/rematch.io/v1alpha1/namespaces/rematch/moves",
            {"items": [{"metadata": {"name": "m1", "creationTimestamp": at(3600)}}]},
            "journal",
            State.WARNING,
            "1 moves under way, the oldest for 3600 s: m1",
            "kubectl -n rematch get moves",
        ),
        (
            "/apis/metrics.k8s.io/v1beta1/pods",
            404,
            "metrics.k8s.io",
            State.FAILED,
            "not served",
            "kubectl apply -f https://",
        ),
        (
            f"{OWN}/configmaps",
            config_map("mode: yes", {}),
            "settings",
            State.FAILED,
            "mode: must be one of",
            "kubectl -n rematch edit configmap rematch",
        ),
        (
            f"{OWN}/configmaps",
            config_map("", {}),
            "opted in",
            State.WARNING,
            "nothing will ever be moved",
            "'settings.managed.anySchedulerNamespaces={NAMESPACE}'",
        ),
        ("/api/v1/nodes", 403, "nodes", State.UNKNOWN, "cannot be listed", ""),
    ],
)
async def test_what_is_wrong_is_said_with_what_mends_it(
    path: str, answer: object, check: str, state: State, text: str, mend: str
) -> None:
    found = (await examined(healthy() | {path: answer}))[check]
    assert (found.state, text in found.text, mend in found.mend) == (state, True, True), found
    assert bool(found.mend) is bool(mend)


async def test_rights_in_the_managed_namespaces_are_enough() -> None:
    """As the chart grants them with `rbac.namespaces`."""
    changes = {(each.group, each.resource, each.verb) for each in rights() if each.scope is Scope.PODS}

    class PerNamespace(Scripted):
        async def send(self, request: ApiRequest) -> ApiResponse:
            answer = await super().send(request)
            if request.path.endswith("/subjectaccessreviews"):
                asked = json.loads(json.dumps(request.body))["spec"]["resourceAttributes"]
                path = (asked["resource"], asked["subresource"])
                everywhere = (asked["group"], "/".join(filter(None, path)), asked["verb"]) in changes
                refused = everywhere and asked["namespace"] == ""
                return ApiResponse(200, json.dumps({"status": {"allowed": not refused}}).encode())
            return answer

    answers = healthy()
    answers[f"{OWN}/configmaps"] = config_map("managed: {namespaces: [shop, web]}", {})
    found = await examine(PerNamespace(answers), "https://c", "rematch", VirtualClock(NOW))
    (finding,) = [finding for finding in found.findings if finding.check == "rights"]
    assert finding.state is State.OK


async def test_nothing_is_changed() -> None:
    connection = Scripted(healthy())
    await examine(connection, "https://c", "rematch", VirtualClock(NOW))
    posted = {request.path for request in connection.asked if request.method != "GET"}
    assert all(path.endswith("reviews") for path in posted)


def test_the_table_has_the_command_below_what_it_mends() -> None:
    findings = [
        Finding("CRDs", State.FAILED, "not served: moves", "helm upgrade x"),
        Finding("rights", State.OK, "all"),
    ]
    shown = render(report("https://c", findings), "table").splitlines()
    assert [line.split() for line in shown[:4]] == [
        ["CHECK", "STATE", "WHAT"],
        ["CRDs", "failed", "not", "served:", "moves"],
        ["->", "helm", "upgrade", "x"],
        ["rights", "ok", "all"],
    ]
    assert shown[-1] == "1 ok, 1 failed; mend the failed ones first"


@pytest.mark.parametrize(("state", "code"), [(State.OK, 0), (State.WARNING, 0), (State.FAILED, 1)])
def test_the_exit_code_says_whether_something_failed(
    state: State, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = report("https://c", [Finding("CRDs", state, "words")])
    monkeypatch.setattr("reactor.cli.doctor.command.examine_cluster", lambda *_, **__: found)
    result = command(monkeypatch, capsys)("doctor", "-o", "json")
    assert result.code == code
    assert json.loads(result.out) == {
        "ok": code == 0,
        "server": "https://c",
        "findings": [{"check": "CRDs", "state": state.value, "text": "words"}],
    }


def _serving(name: str, *, whole: bool) -> Json:
    owner = {"kind": "ReplicaSet", "name": name, "uid": f"rs-{name}", "controller": True}
    container: Json = {"name": "srv"}
    if whole:
        container |= {
            "readinessProbe": {"tcpSocket": {"port": 80}},
            "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
        }
    meta = {"name": f"{name}-1", "namespace": "shop", "uid": name, "labels": {"app": name}, "ownerReferences": [owner]}
    return {"metadata": meta, "spec": {"containers": [container], "nodeName": "n1"}, "status": {"phase": "Running"}}


async def test_workloads_that_would_lose_requests_are_named() -> None:
    listing = {"metadata": {"resourceVersion": "1"}}
    pdb = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}}
    pods = [_serving("web", whole=True)]
    answers = healthy() | {
        Kind.PDBS.path(): listing | {"items": [pdb]},
        Kind.PODS.path(): listing | {"items": pods},
    }
    assert (await examined(answers))["no lost requests"].state is State.OK
    pods.append(_serving("db", whole=False))
    found = (await examined(answers))["no lost requests"]
    assert found.state is State.WARNING
    assert found.text == (
        "of 2 workloads without readiness probe: shop/db-1; without preStop hook: shop/db-1; without PDB: shop/db-1"
    )


async def test_an_extender_that_is_configured_has_to_be_asked() -> None:
    settings = "mode: act\nmanaged: {anySchedulerNamespaces: [shop]}\nplacement: {steering: extender}\n"
    path = "/apis/coordination.k8s.io/v1/namespaces/rematch/leases/rematch-extender"
    answers = healthy() | {f"{OWN}/configmaps": config_map(settings, {})}
    assert (await examined(answers))["steering"].state is State.FAILED
    lease: Json = {"metadata": {"name": "rematch-extender"}, "spec": {"renewTime": at(5)}}
    assert "never asked" in (await examined(answers | {path: lease}))["steering"].text
    lease["metadata"]["annotations"] = {"rematch.io/asked-at": at(3600)}
    assert (await examined(answers | {path: lease}))["steering"].state is State.OK
    lease["spec"]["renewTime"] = at(90)
    assert "last seen 90 s ago" in (await examined(answers | {path: lease}))["steering"].text
