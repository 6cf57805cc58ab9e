"""`reactor.framework` on the embedded cluster, called from a thread as a user's script calls it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from loadtests.embedded.resources import PODS
from reactor.errors import ClusterError, InputError
from reactor.framework import Cluster, Node, Pod
from reactor.framework.event_loop import LoopThread
from tests.support.clock import eventually
from tests.support.shop import Shop, open_shop

T = TypeVar("T")
PAGE = Path(__file__).parents[3] / "docs" / "framework.md"


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with open_shop() as opened:
        yield opened


@pytest.fixture
def cluster(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Found by KUBECONFIG, as in a script."""
    monkeypatch.setenv("KUBECONFIG", str(shop.cluster.kubeconfig(tmp_path / "kubeconfig")))
    return Cluster()


async def in_script(cluster: Cluster, script: Callable[..., T], *arguments: Any) -> T:
    def run() -> T:
        with cluster:
            return script(*arguments)

    return await asyncio.to_thread(run)


def name_of(shop: Shop, app: str) -> str:
    return str(shop.pods(app)[0]["metadata"]["name"])


def uid_of(shop: Shop, app: str) -> str:
    return str(shop.pods(app)[0]["metadata"]["uid"])


async def test_the_example_of_the_page_balances_the_cluster(shop: Shop, cluster: Cluster) -> None:
    example, *_ = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, "framework.md", "exec"), names)
    stayed = uid_of(shop, "db")

    result = await in_script(cluster, names["scheduling_workflow"])

    assert {*shop.where("web"), *shop.where("db")} == {"n1", "n2"}
    assert len(result.moved) == 1
    assert result.refused == {}
    assert uid_of(shop, "db") == stayed


async def test_nodes_and_pods_are_in_kses_form(shop: Shop, cluster: Cluster) -> None:
    web, db = name_of(shop, "web"), name_of(shop, "db")
    before = uid_of(shop, "web"), uid_of(shop, "db")

    def read() -> tuple[Any, ...]:
        stayed = cluster.set_allocation_plan(cluster.get_allocation_plan())
        assert (stayed.moved, stayed.refused) == ({}, {})
        return cluster.nodes, cluster.info, Node("n1").pods, Pod(db).node, Pod(db).metrics, cluster.unready_pods

    nodes, info, pods, node, metrics, unready = await in_script(cluster, read)

    first, second = nodes
    assert (first["name"], first["type"], second["name"]) == ("n1", "worker", "n2")
    assert first["capacity"] == {"cpu": 4_000_000_000, "memory": 8 * 1024 * 1024}
    assert first["usage"]["cpu"] == 3_900_000_000
    assert {pod["name"] for pod in first["pods"]} == {web, db}
    assert pods == first["pods"]
    assert second["pods"] == []
    assert (info["nodes"], info["pods"], info["pending_pods"]) == (2, 2, 0)
    assert node == "n1"
    assert metrics["usage"]["cpu"] == 2_900_000_000
    assert unready == []
    assert (uid_of(shop, "web"), uid_of(shop, "db")) == before


async def test_a_plan_with_an_unknown_name_changes_nothing(shop: Shop, cluster: Cluster) -> None:
    container = {"name": "dns", "image": "dns"}
    spec = {"schedulerName": "rematch", "containers": [container], "nodeName": "n1"}
    shop.cluster.api.create(
        PODS, {"metadata": {"name": "dns", "namespace": "kube-system", "labels": {"app": "dns"}}, "spec": spec}
    )
    wrong = {
        "there is no pod none": {"none": "n2"},
        "kube-system/dns is not managed": {"kube-system/dns": "n2"},
        "no node n9": {name_of(shop, "db"): "n9"},
    }

    def ask() -> None:
        for problem, plan in wrong.items():
            with pytest.raises(InputError, match=problem):
                cluster.set_allocation_plan({name_of(shop, "web"): "n2"} | plan)

    await in_script(cluster, ask)

    assert shop.where("web") == ["n1"]


async def test_what_does_not_fit_is_refused_with_the_reason(shop: Shop, cluster: Cluster) -> None:
    web, db = name_of(shop, "web"), name_of(shop, "db")
    shop.cordon("n2")

    result = await in_script(cluster, cluster.set_allocation_plan, {db: "n2", web: "n1"})

    assert result.moved == {}
    assert "unschedulable" in result.refused[db]
    assert shop.where("db") == ["n1"]


async def test_a_pod_can_be_evicted_and_its_successor_scheduled_by_hand(shop: Shop, cluster: Cluster) -> None:
    web = name_of(shop, "web")

    def by_hand() -> list[Any]:
        Pod(web).evict()
        Pod(web[:-5]).schedule("n2")
        return cluster.get_pending_pods()

    waiting = await in_script(cluster, by_hand)

    assert waiting == []
    await eventually(lambda: shop.where("web") == ["n2"])
    assert name_of(shop, "web") != web


async def test_a_cluster_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    missing = Cluster(kubeconfig=str(tmp_path / "none"))
    with pytest.raises(InputError, match="no such file"):
        await in_script(missing, missing.get_nodes)


def test_a_call_that_takes_too_long_ends_with_an_error_and_is_cancelled() -> None:
    thread, cancelled = LoopThread(), []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    with pytest.raises(ClusterError, match=r"a test has not ended within 0\.05 s"):
        thread.call(endless(), "a test", 0.05)
    thread.close(5.0)
    assert cancelled == [True]
