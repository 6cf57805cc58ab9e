"""`rematch plan` on a live cluster: shown, confirmed, carried out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
import structlog

from loadtests.embedded.resources import CONFIGMAPS, MOVES, NAMESPACES, PODS
from reactor.app import Options, open_controller
from reactor.cli.history import HistoryRequest, show_history
from reactor.cli.plan_live import plan_live
from reactor.cli.planning import PlanRequest
from reactor.cluster.kinds import Kind, ObjectName
from reactor.cluster.reads import ClusterReader, Page
from reactor.cluster.surge_writes import Answer, CallAnswer, SurgeWriter
from reactor.errors import ClusterError, Forbidden, InputError, SettingsError
from storage import StorageError
from storage.rows import MoveRow, PlanRow
from storage.store import Store
from tests.support.clock import eventually
from tests.support.real_controller import measured
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
        "configmap": None,
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
        "force": False,
        "store": None,
        "default_store": Path(kubeconfig).with_name("default.db"),
        "prometheus_token_file": None,
        "prometheus_token_host": None,
        "prometheus_ca_file": None,
        "planner_function": None,
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
    async with await Store.open(path, read_only=True) as store:
        (move,), (plan,) = await store.moves(), await store.plans()
        assert (move.state, move.to_node, move.plan_id) == ("done", "n2", plan.id)
        assert (plan.mode, plan.trigger, plan.moves) == ("act", "demand", 1)
        assert await store.problem(plan.id) is not None


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


async def test_who_does_not_confirm_is_told_that_nothing_was_changed(
    shop: Shop, kubeconfig: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.fail("web")
    monkeypatch.setattr(click, "confirm", lambda *_texts, **_options: False)

    with pytest.raises(click.exceptions.Exit) as stop:
        await plan_live(request(kubeconfig, apply=True))

    assert stop.value.exit_code == 1
    assert capsys.readouterr().err.endswith("nothing was changed\n")
    assert shop.where("web") == ["n1"]


async def test_a_move_that_is_not_carried_out_is_an_error(
    shop: Shop, kubeconfig: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.fail("web")

    async def refuse(*_: object, **__: object) -> CallAnswer:
        return CallAnswer(Answer.REFUSED, "not today")

    monkeypatch.setattr(SurgeWriter, "scale", refuse)
    with pytest.raises(ClusterError, match="1 of 1 planned moves were not carried out"):
        await plan_live(request(kubeconfig, apply=True, yes=True))

    assert "not today" in capsys.readouterr().err
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
    assert captured.err.endswith(f"\n{move['pod']}: bound ({move['to']})\n")


async def test_nothing_to_do_ends_at_once(shop: Shop, kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings_that_manage_nobody = Path(kubeconfig).with_name("s.yaml")
    settings_that_manage_nobody.write_text("managed: {namespaces: [bank]}")

    await plan_live(request(kubeconfig, apply=True, settings_file=settings_that_manage_nobody))

    assert json.loads(capsys.readouterr().out)["moves"] == []


def configure(shop: Shop, text: str, name: str = "rematch") -> None:
    """The ConfigMap that `deploy/rematch.yaml` installs."""
    meta = {"name": name, "namespace": "rematch"}
    if shop.cluster.store.find(NAMESPACES, "", "rematch") is None:
        shop.cluster.api.create(NAMESPACES, {"metadata": {"name": "rematch"}})
    shop.cluster.api.create(CONFIGMAPS, {"metadata": meta, "data": {"settings.yaml": text}})


def install_controller(shop: Shop) -> None:
    meta = {"name": "rematch-0", "namespace": "rematch", "labels": {"app": "", "app.kubernetes.io/name": "rematch"}}
    spec = {"containers": [{"name": "rematch", "image": "rematch"}], "nodeName": "n2"}
    shop.cluster.api.create(PODS, {"metadata": meta, "spec": spec})


async def test_the_settings_of_the_controller_are_in_force_and_named(
    shop: Shop, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(shop, "managed: {namespaces: [bank]}")
    configure(shop, "planner: {name: greedy}", "other")
    shop.fail("web")

    await plan_live(request(kubeconfig, apply=True, yes=True))
    usual = capsys.readouterr()
    await plan_live(request(kubeconfig, configmap=ObjectName("rematch", "other")))
    other = capsys.readouterr()

    assert usual.err == "settings: ConfigMap rematch/rematch\n"
    assert json.loads(usual.out)["moves"] == []
    assert other.err == "settings: ConfigMap rematch/other\n"
    assert json.loads(other.out)["planner"] == "greedy"
    assert shop.where("web") == ["n1"]


async def test_settings_that_the_controller_refuses_are_refused(shop: Shop, kubeconfig: str) -> None:
    configure(shop, "mode: fly")

    with pytest.raises(SettingsError, match="ConfigMap rematch/rematch: mode: "):
        await plan_live(request(kubeconfig))
    with pytest.raises(InputError, match="there is no ConfigMap rematch/others"):
        await plan_live(request(kubeconfig, configmap=ObjectName("rematch", "others")))


async def test_a_missing_permission_is_reported_at_once(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = ClusterReader.list_all

    async def list_all(reader: ClusterReader, kind: Kind) -> Page:
        if kind is Kind.CONFIG_MAPS:
            raise Forbidden("GET /api/v1/namespaces/rematch/configmaps: 403", status=403)
        return await listed(reader, kind)

    monkeypatch.setattr(ClusterReader, "list_all", list_all)
    with pytest.raises(ClusterError, match="configmaps: 403; --settings FILE plans without it"):
        await plan_live(request(kubeconfig))


async def test_a_file_of_settings_is_used_instead_of_the_config_map(
    shop: Shop, kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(shop, "mode: fly")
    file = tmp_path / "s.yaml"
    file.write_text("planner: {name: greedy}")

    await plan_live(request(kubeconfig, settings_file=file))

    captured = capsys.readouterr()
    assert captured.err == f"settings: {file}\n"
    assert json.loads(captured.out)["planner"] == "greedy"


async def test_plan_and_moves_are_stored_before_the_first_call(
    shop: Shop, kubeconfig: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.fail("web")
    seen: list[tuple[list[str], list[tuple[str, bool]]]] = []
    scale = SurgeWriter.scale

    async def look_and_scale(writer: SurgeWriter, *given: Any, **named: Any) -> CallAnswer:
        async with await Store.open(tmp_path / "default.db", read_only=True) as store:
            plans, moves = await store.plans(), await store.moves()
        seen.append(([plan.id for plan in plans], [(move.state, move.plan_id == plans[0].id) for move in moves]))
        return await scale(writer, *given, **named)

    monkeypatch.setattr(SurgeWriter, "scale", look_and_scale)
    await plan_live(request(kubeconfig, apply=True, yes=True))

    plans, moves = seen[0]
    assert len(plans) == 1
    assert moves == [("planned", True)]
    assert f"plan {plans[0]} is recorded in {tmp_path / 'default.db'}" in capsys.readouterr().err


async def test_without_a_writable_store_nothing_is_evicted(shop: Shop, kubeconfig: str, tmp_path: Path) -> None:
    shop.fail("web")
    (tmp_path / "folder.db").mkdir()

    with pytest.raises(StorageError, match="cannot be used"):
        await plan_live(request(kubeconfig, apply=True, yes=True, store=tmp_path / "folder.db"))

    assert shop.where("web") == ["n1"]


@pytest.mark.parametrize("apply", [False, True])
async def test_pods_that_were_just_moved_cool_down(
    shop: Shop, kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], apply: bool
) -> None:
    now, uid = shop.clock.now(), shop.pods("web")[0]["metadata"]["uid"]
    path = tmp_path / "rematch.db"
    async with await Store.open(path) as store:
        moved = MoveRow("m", None, "old", "default/old", "w", "n2", "n1", "done", now - 1)
        store.add_move(replace(moved, ended=now - 1, outcome="done", replacement_uid=uid, at=now))
    shop.fail("web")

    await plan_live(request(kubeconfig, store=path, apply=apply, yes=apply))

    plan = json.loads(capsys.readouterr().out)
    assert plan["moves"] == []
    assert [wait["reason"] for wait in plan["waits"]] == ["cooldown"]


async def test_beside_a_controller_that_acts_nothing_is_applied(
    shop: Shop, kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(shop, "mode: act")
    install_controller(shop)
    await eventually(lambda: shop.pods("")[0]["status"].get("phase") == "Running")
    shop.fail("web")

    with pytest.raises(InputError, match=r"the controller rematch/rematch-0 is running in mode act.*--force"):
        await plan_live(request(kubeconfig, apply=True, yes=True))
    assert shop.where("web") == ["n1"]
    await plan_live(request(kubeconfig))
    assert [move["to"] for move in json.loads(capsys.readouterr().out)["moves"]] == ["n2"]

    await plan_live(request(kubeconfig, apply=True, yes=True, force=True))
    assert shop.where("web") == ["n2"]
    assert "warning: the controller rematch/rematch-0 is running in mode act" in capsys.readouterr().err


async def test_beside_a_controller_that_observes_it_is_applied(shop: Shop, kubeconfig: str) -> None:
    configure(shop, "mode: observe")
    install_controller(shop)
    shop.fail("web")

    await plan_live(request(kubeconfig, apply=True, yes=True))

    assert shop.where("web") == ["n2"]


@pytest.mark.parametrize("mode", ["observe", "act"])
async def test_the_controller_that_leads_carries_the_plan_out(
    shop: Shop, kubeconfig: str, tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, file = tmp_path / "rematch.db", tmp_path / "s.yaml"
    file.write_text(f"mode: {mode}\nhappiness: {{threshold: 0.01}}\nmetrics: {{metricsApi: {{interval: 1s}}}}")
    async with open_controller(Options(path, kubeconfig, settings_file=file)) as live:
        job = asyncio.create_task(live.run())
        await eventually(lambda: live.controller.state.synced and not live.controller.acting.journal_problem)
        await eventually(lambda: measured(live))
        shop.fail("web")
        await plan_live(request(kubeconfig, apply=True, yes=True))
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        await live.controller.store.flush()
        states = [row.state for row in await live.controller.store.moves()]

    assert shop.where("web") == ["n2"]
    assert states == ["done"]
    said = capsys.readouterr()
    assert "leads: it carries the plan out" in said.err
    assert "1 of 1 pods moved" in said.out


async def test_what_is_under_way_when_the_command_is_interrupted_stays_in_the_journal(
    shop: Shop, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next process that leads finishes it or takes it back."""
    shop.fail("web")
    asked = asyncio.Event()

    async def never_answer(*_: object, **__: object) -> CallAnswer:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(SurgeWriter, "scale", never_answer)
    command = asyncio.create_task(plan_live(request(kubeconfig, apply=True, yes=True)))
    await asyncio.wait_for(asked.wait(), 20)
    command.cancel()
    await asyncio.gather(command, return_exceptions=True)

    (entry,) = [stored.obj for stored in shop.cluster.store.all(MOVES)]
    assert entry["spec"]["state"] == "surging"


@pytest.mark.parametrize("running", [False, True], ids=["after a controller", "beside a controller"])
async def test_reading_leaves_the_store_of_a_controller_as_it_is(
    shop: Shop, kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], running: bool
) -> None:
    path = tmp_path / "store" / "rematch.db"
    shop.fail("web")

    async def read_all() -> None:
        before = store_files(path)
        await plan_live(request(kubeconfig, store=path))
        await plan_live(request(kubeconfig, store=path, compare=True))
        shown = HistoryRequest(path, 50, waits=True, plan_id=None, problem_id=None, output="table", server="")
        assert "default/old" in await asyncio.to_thread(show_history, shown)
        with pytest.raises(InputError, match="no problem is stored for plan p"):
            await asyncio.to_thread(show_history, replace(shown, problem_id="p"))
        assert store_files(path) == before

    async with await Store.open(path) as store:
        store.add_plan(PlanRow("p", "c", 1.0, "stable", "act", "unhappy", 1, 0, True, "{}"))
        store.add_move(MoveRow("m", "p", "u", "default/old", "w", "n1", "n2", "evicted", 1.0))
        await store.flush()
        if running:
            await read_all()
    if not running:
        await read_all()
        assert {each.name for each in path.parent.iterdir()} == {"rematch.db"}

    async with await Store.open(path) as store:
        assert [row.state for row in await store.open_moves()] == ["evicted"]


def store_files(path: Path) -> dict[str, bytes]:
    """Without the index of the write-ahead log, which holds the locks of readers."""
    return {each.name: each.read_bytes() for each in path.parent.iterdir() if not each.name.endswith("-shm")}
