"""`rematch plan` on a live cluster: shown, confirmed, carried out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import structlog

from reactor.cli.plan_live import plan_live
from reactor.cli.planning import PlanRequest
from storage.store import Store
from tests.support.shop import Shop, open_shop


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with open_shop() as opened:
        yield opened


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.fixture
def kubeconfig(shop: Shop, tmp_path: Path) -> str:
    return str(shop.cluster.kubeconfig(tmp_path / "kubeconfig"))


def request(kubeconfig: str, **options: Any) -> PlanRequest:
    given: dict[str, Any] = {
        "files": (),
        "settings_file": None,
        "output": "json",
        "planner": None,
        "parameters": (),
        "compare": False,
        "scope": None,
        "scheduler_name": None,
        "now": None,
        "needs": None,
        "apply": False,
        "yes": False,
        "store": None,
        "kubeconfig": kubeconfig,
        "context": None,
    }
    return PlanRequest(**(given | options))


async def test_a_plan_is_shown_and_nothing_is_touched(
    shop: Shop, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.fail("web")

    await plan_live(request(kubeconfig))

    plan = json.loads(capsys.readouterr().out)
    assert [(move["from"], move["to"]) for move in plan["moves"]] == [("n1", "n2")]
    assert plan["needs"] == "metrics"
    assert shop.where("web") == ["n1"]
    assert shop.said() == []


async def test_with_apply_and_yes_it_is_carried_out_and_recorded(
    shop: Shop, kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.fail("web")
    before = shop.pods("web")[0]["metadata"]["uid"]
    path = tmp_path / "kept.db"

    await plan_live(request(kubeconfig, apply=True, yes=True, output="table", store=path))

    assert shop.where("web") == ["n2"]
    assert shop.pods("web")[0]["metadata"]["uid"] != before
    assert shop.where("db") == ["n1"]
    assert "done" in capsys.readouterr().out
    async with await Store.open(path) as store:
        assert [(move.state, move.to_node) for move in await store.moves()] == [("done", "n2")]


async def test_without_yes_it_needs_a_confirmation(
    shop: Shop, kubeconfig: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.fail("web")
    confirmations: list[str] = []

    def refuse(text: str, **_options: Any) -> None:
        confirmations.append(text)
        raise click.Abort

    monkeypatch.setattr(click, "confirm", refuse)
    with pytest.raises(click.Abort):
        await plan_live(request(kubeconfig, apply=True))

    assert "Evict 1 pod" in confirmations[0]
    assert shop.where("web") == ["n1"]


async def test_managed_pending_pods_are_bound_on_demand(
    shop: Shop, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from loadtests.embedded.resources import DEPLOYMENTS

    web = shop.cluster.api.get(DEPLOYMENTS, "default", "web")
    shop.cluster.api.update(DEPLOYMENTS, {**web, "spec": {**web["spec"], "replicas": 2}})
    async with asyncio.timeout(5):
        while len(shop.pods("web")) < 2:
            await asyncio.sleep(0.01)

    await plan_live(request(kubeconfig, apply=True, yes=True))

    assert all(shop.where("web"))
    captured = capsys.readouterr()
    (move,) = json.loads(captured.out)["moves"]
    assert captured.err == f"{move['pod']}: bound ({move['to']})\n"


async def test_nothing_to_do_ends_at_once(shop: Shop, kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings_that_manage_nobody = Path(kubeconfig).with_name("s.yaml")
    settings_that_manage_nobody.write_text("managed: {namespaces: [bank]}")

    await plan_live(request(kubeconfig, apply=True, settings_file=settings_that_manage_nobody))

    assert json.loads(capsys.readouterr().out)["moves"] == []
