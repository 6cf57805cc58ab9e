"""external.metrics.k8s.io on a real API server: what kubectl reads, and a real HorizontalPodAutoscaler that scales."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import numpy as np
import pytest

from loadtests.controlplane import ControlPlane
from loadtests.controlplane.api_service import ApiService, registered
from loadtests.controlplane.credentials import OUR_HOST
from loadtests.workloads.api import LabApi
from reactor.cluster.connection import open_connection
from reactor.errors import ClusterError, Conflict, InputError
from reactor.forecasts.forecasts import AxisForecasts, Forecasts, KindForecasts
from reactor.history.levels import Axis
from reactor.record.workload_metrics import WorkloadMetrics
from reactor.web.external_metrics import ExternalMetricsOptions, serve_external_metrics
from tests.support.cluster import make_node, make_pod
from tests.support.rig import Rig

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

API = "/apis/external.metrics.k8s.io/v1beta1"
SHOP = "shop"
NAMESPACE = OUR_HOST.split(".")[1]


def predicting() -> WorkloadMetrics:
    """1.4 cores now, 1.5 predicted."""
    rig = Rig()
    rig.sync(make_pod("web-1"), make_pod("web-2"), make_node("n1"))
    rig.measure({"web-1": 0.4, "web-2": 1.0}, {"n1": 2.0})
    found = AxisForecasts(np.full((1, 3), 1.5), np.full((1, 3), 2.5), np.full((1, 3), True), np.full(1, False))
    workloads = KindForecasts({f"{SHOP}/ReplicaSet/web": 0}, {Axis.CPU: found})
    rig.state.forecasts = Forecasts(rig.clock.now(), workloads=workloads)
    return WorkloadMetrics(rig.state, lambda: rig.settings)


def served_by(host: str, port: int) -> ApiService:
    return ApiService("external.metrics.k8s.io", "v1beta1", host, port)


@asynccontextmanager
async def served(plane: ControlPlane, metrics: WorkloadMetrics) -> AsyncIterator[LabApi]:
    given = plane.credentials.metrics
    options = ExternalMetricsOptions(0, given.certificate, given.key, host="127.0.0.1")
    connection, api = await open_connection(str(plane.kubeconfig), None), plane.client()
    try:
        async with (
            serve_external_metrics(options, metrics, connection, NAMESPACE, Rig().clock) as url,
            registered(plane, api, served_by(OUR_HOST, int(url.rpartition(":")[2]))),
        ):
            yield api
    finally:
        await connection.close()
        await api.close()


async def create(api: LabApi, path: str, body: dict[str, Any]) -> None:
    with suppress(Conflict):
        await api.create(path, body)


async def until_served(api: LabApi, path: str) -> dict[str, Any]:
    async with asyncio.timeout(50):
        while True:
            try:
                return await api.get(path)
            except ClusterError:
                await asyncio.sleep(0.1)


async def test_the_api_server_passes_requests_on(real_plane: ControlPlane) -> None:
    async with served(real_plane, predicting()) as api:
        listed = await until_served(api, API)
        assert "rematch_predicted_cpu_cores" in [each["name"] for each in listed["resources"]]
        path = f"{API}/namespaces/{SHOP}/rematch_predicted_cpu_cores"
        found = await api.get(f"{path}?labelSelector=workload%3Dweb,horizon%3D5m")
        (item,) = found["items"]
        assert (item["value"], item["metricLabels"]["horizon"]) == ("1500m", "5m")
        assert (await api.get(f"{path}?labelSelector=workload%3Dother"))["items"] == []
        with pytest.raises(ClusterError, match="lists them"):
            await api.get(f"{API}/namespaces/{SHOP}/requests_per_second")


async def test_nobody_but_the_api_server_is_answered(real_plane: ControlPlane) -> None:
    given = real_plane.credentials.metrics
    options = ExternalMetricsOptions(0, given.certificate, given.key, host="127.0.0.1")
    connection = await open_connection(str(real_plane.kubeconfig), None)
    try:
        async with serve_external_metrics(options, predicting(), connection, NAMESPACE, Rig().clock) as url:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            assert await reader.read() == b"", "no TLS, no certificate: no answer"
            writer.close()
    finally:
        await connection.close()


async def test_it_refuses_to_start_where_another_server_owns_the_group(real_plane: ControlPlane) -> None:
    api = real_plane.client()
    try:
        async with registered(real_plane, api, served_by(f"keda-metrics.{NAMESPACE}.svc", 443)):
            with pytest.raises(InputError, match=f"served by {NAMESPACE}/keda-metrics already"):
                async with served(real_plane, predicting()):
                    pass
    finally:
        await api.close()


@pytest.mark.timeout(150)
async def test_a_real_autoscaler_scales_by_predicted_load(real_plane: ControlPlane) -> None:
    """1.5 cores predicted at 500m for each replica are three replicas, whatever is used now."""
    async with served(real_plane, predicting()) as api:
        await create(api, "/api/v1/namespaces", {"metadata": {"name": SHOP}})
        role = {"metadata": {"name": "external-metrics-reader"}}
        rules = [{"apiGroups": ["external.metrics.k8s.io"], "resources": ["*"], "verbs": ["get", "list"]}]
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        await create(api, f"{rbac}/clusterroles", {**role, "rules": rules})
        subject = {"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": "kube-system"}
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "external-metrics-reader"}
        await create(api, f"{rbac}/clusterrolebindings", {**role, "roleRef": ref, "subjects": [subject]})
        labels = {"app": "web"}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
        deployment = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
        deployments = f"/apis/apps/v1/namespaces/{SHOP}/deployments"
        await create(api, deployments, {"metadata": {"name": "web"}, "spec": deployment})
        metric = {
            "name": "rematch_predicted_cpu_cores",
            "selector": {"matchLabels": {"workload": "web", "horizon": "5m"}},
        }
        target = {"type": "AverageValue", "averageValue": "500m"}
        spec = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 10,
            "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
        }
        autoscalers = f"/apis/autoscaling/v2/namespaces/{SHOP}/horizontalpodautoscalers"
        await until_served(api, API)
        await create(api, autoscalers, {"metadata": {"name": "web"}, "spec": spec})
        async with asyncio.timeout(120):
            while (await api.get(f"{deployments}/web"))["spec"]["replicas"] != 3:
                await asyncio.sleep(0.5)
        await api.delete(f"{autoscalers}/web", {})
        await api.delete(f"{deployments}/web", {})
