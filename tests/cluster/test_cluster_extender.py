"""The extender behind the real kube-scheduler: BNIP's nine pods go where its formula says, a replacement where it is
planned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from loadtests.experiments.bnip.design import ARMS, groups, use_of
from loadtests.experiments.bnip.lab import BnipLab, open_lab
from reactor.clock import SystemClock
from reactor.cluster.connection import open_connection
from reactor.cluster.extender_sign import ExtenderSign
from reactor.cluster.hints import Hint, HintWriter

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]

WITH_EXTENDER = ARMS[-1]
_REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
_PODS = "/api/v1/namespaces/default/pods"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lab(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BnipLab]:
    async with open_lab(tmp_path_factory.mktemp("extender") / "lab") as opened:
        yield opened


async def test_the_nine_pods_are_placed_as_the_formula_says(lab: BnipLab) -> None:
    async with lab.deployed(WITH_EXTENDER) as deployed:
        pass
    assert groups(deployed.placement) == "node1 {3, 8}, node2 {2, 5, 9}, node3 {1, 4, 6, 7}"
    assert round(use_of(deployed.placement).variance, 1) == 7.6
    assert deployed.scheduler is not None, "kube-scheduler has timed its decisions"


async def test_a_replacement_lands_on_its_planned_node(lab: BnipLab) -> None:
    connection, clock = await open_connection(str(lab.plane.kubeconfig), None), SystemClock()
    hints, sign = HintWriter(connection, clock), ExtenderSign(connection, "default", clock)
    try:
        async with lab.scheduler_of(WITH_EXTENDER) as (scheduler, _):
            owner = await lab.api.create(_REPLICA_SETS, _replica_set(scheduler))
            uid = owner["metadata"]["uid"]
            await hints.change(lambda _: {uid: Hint("m1", "node1", avoid="node3")})
            await hints.until_seen()
            await lab.api.patch(f"{_REPLICA_SETS}/web", {"spec": {"replicas": 1}})
            nodes: list[str | None] = []
            async with asyncio.timeout(60):
                while not nodes or None in nodes:
                    await asyncio.sleep(0.1)
                    nodes = [pod["spec"].get("nodeName") for pod in (await lab.api.get(_PODS))["items"]]
            assert nodes == ["node1"], "the smallest node, which kube-scheduler likes least"
            async with asyncio.timeout(60):
                while await sign.problem():
                    await asyncio.sleep(0.5)
    finally:
        await connection.close()


def _replica_set(scheduler: str) -> dict[str, object]:
    labels = {"app": "web"}
    container = {"name": "web", "image": "none", "resources": {"requests": {"cpu": "100m", "memory": "160Mi"}}}
    spec = {"schedulerName": scheduler, "automountServiceAccountToken": False, "containers": [container]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }
