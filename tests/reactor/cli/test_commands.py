"""What all commands have in common, and the ones that read from a running controller or its store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click
import pytest

from reactor.cli.history import HistoryRequest, history_rows
from reactor.cli.main import cli
from reactor.cli.output import table
from reactor.cli.status import render_status, steering_line
from reactor.record.calibration_summary import CalibrationSummary
from reactor.record.history_reader import HistoryEntry, HistoryKind
from reactor.web.view import Gauge, NodeView, Overview, PodChip, Refusal, SettingsView, SteeringView
from storage.rows import DecisionRow, LoadBinRow, MoveCheckRow, MoveRow, PlanRow
from storage.store import Store
from tests.support.clock import NOW
from tests.support.command import Command

COMMANDS = ("run", "plan", "explain", "status", "history", "config")


def test_help_lists_every_command(rematch: Command) -> None:
    result = rematch("--help")

    assert result.code == 0
    for name in (*COMMANDS, "demo", "lab"):
        assert f"\n  {name} " in result.out


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_help(rematch: Command, name: str, flag: str) -> None:
    result = rematch(name, flag)

    assert result.code == 0
    assert result.out.startswith("Usage: ")
    assert len(result.out.splitlines()) > 5


def test_every_option_is_explained_or_named_as_kubectl_does() -> None:
    context = click.Context(cli)
    for name in COMMANDS:
        made = cli.get_command(context, name)
        assert made is not None
        assert made.help


def test_the_version_is_printed(rematch: Command) -> None:
    assert rematch("--version").out.startswith("rematch")


@pytest.mark.parametrize("arguments", [["fly"], ["plan", "--fly"], ["explain"], ["run", "--port", "99999"]])
def test_a_wrong_command_line_says_how_to_get_help(rematch: Command, arguments: list[str]) -> None:
    result = rematch(*arguments)

    assert (result.code, result.out) == (2, "")
    assert "Error:" in result.err


@pytest.mark.parametrize("arguments", [["status"], ["history"], ["explain", "shop/web-1"]])
@pytest.mark.parametrize("server", ["http://127.0.0.1:1", "not a url"])
def test_without_a_controller_there_is_one_line(rematch: Command, arguments: list[str], server: str) -> None:
    result = rematch(*arguments, "--server", server)

    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert server in result.err


@pytest.mark.parametrize("arguments", [["plan"], ["run", "--port", "0"]])
def test_without_a_cluster_there_is_one_line(
    rematch: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    result = rematch(*arguments, "--kubeconfig", tmp_path / "missing")

    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert "missing" in result.err


@pytest.mark.parametrize("name", ["settings", "a/b/c", "/settings", "rematch/"])
def test_a_config_map_is_named_with_its_namespace(rematch: Command, name: str) -> None:
    result = rematch("run", "--configmap", name)

    assert result.code == 2
    assert "NAMESPACE/NAME" in result.err


def test_the_settings_come_from_one_place(rematch: Command, tmp_path: Path) -> None:
    result = rematch("run", "--configmap", "rematch/settings", "--settings", tmp_path / "s.yaml")

    assert result.code == 2
    assert "exclude each other" in result.err


async def _fill(path: Path, waits: int) -> None:
    async with await Store.open(path) as store:
        store.add_plan(
            PlanRow("p", "c", NOW, "stable", "act", "unhappy", 1, 0, True, "{}", "shop/web-1", "n1 is crowded")
        )
        move = MoveRow("m", None, "u", "shop/web-1", "w", "n1", "n2", "done", NOW, ended=NOW, text="is Ready", at=NOW)
        store.add_move(move)
        store.add_decisions(
            *(DecisionRow(f"w{at}", "c", NOW + at, "wait", "u", "shop/db-1", "cooldown") for at in range(1, waits + 1))
        )


def test_history_is_read_from_the_store_and_waits_do_not_hide_other_entries(rematch: Command, tmp_path: Path) -> None:
    store = tmp_path / "rematch.db"
    asyncio.run(_fill(store, waits=60))

    table = rematch("history", "--store", store)
    assert table.code == 0
    kinds = [line.split()[1:3] for line in table.out.splitlines()[1:]]
    assert kinds == [["move", "shop/web-1"], ["rematch", "shop/web-1"]]

    rows = json.loads(rematch("history", "--store", store, "--waits", "--limit", "5", "-o", "json").out)
    assert [row["kind"] for row in rows] == ["wait"] * 5


def test_an_empty_history_says_so(rematch: Command, tmp_path: Path) -> None:
    store = tmp_path / "rematch.db"
    asyncio.run(_fill_nothing(store))

    assert rematch("history", "--store", store).out == "nothing has happened yet\n"


async def _fill_nothing(path: Path) -> None:
    async with await Store.open(path):
        pass


async def _fill_calibration(path: Path) -> None:
    async with await Store.open(path) as store:
        store.add_load_bins(
            LoadBinRow(5, 12_000.0, 12.0, 3300.0, 6.0, NOW), LoadBinRow(19, 300.0, 60.0, 295.0, 66.0, NOW)
        )
        store.add_move_checks(MoveCheckRow("m", "p", "u", "n2", NOW, 0.004, 0.01, helped=True))


def test_history_ends_with_how_well_the_curve_foretells(rematch: Command, tmp_path: Path) -> None:
    store = tmp_path / "rematch.db"
    asyncio.run(_fill(store, waits=1))
    asyncio.run(_fill_calibration(store))

    assert rematch("history", "--store", store).out.splitlines()[-2:] == [
        "",
        "curve: 12,300 probes, predicted 0.59% to fail, 0.59% failed;"
        " 1 move judged, 1 helped, predicted 0.40% to fail there, 1.00% failed",
    ]
    assert "curve" not in rematch("history", "--store", store, "-o", "json").out


def test_a_file_that_is_no_store_gets_one_line(rematch: Command, tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is not SQLite at all, but long enough to look at" * 50)

    result = rematch("history", "--store", broken)

    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert str(broken) in result.err


def test_status_shows_problems_first() -> None:
    chip = PodChip("u", "shop/web-1", 0.4, 0.8, False)
    gib = 2.0**30
    node = NodeView("n1", False, False, Gauge(3.0, 4.0, "cores"), Gauge(None, 8 * gib, "bytes"), (chip,))
    overview = Overview(
        title="Rematch",
        mode="act",
        synced=False,
        halted="web-2 is not Ready",
        planner="stable",
        threshold=0.8,
        at=NOW,
        cycles=3,
        rematches=2,
        moves=1,
        settings=SettingsView("abc", "file", (Refusal("mode", "fly is no mode"),)),
        problems=("prometheus: no answer",),
        nodes=(node,),
        pending=(),
        steering=SteeringView("auto", policy_works=False, tried=True, problem="install it: kubectl apply"),
        calibration=CalibrationSummary(12_300.0, 0.031, 0.029),
    )

    text = render_status(overview)

    for part in (
        "steering auto, policy: install it: kubectl apply",
        "mode act",
        "curve: 12,300 probes, predicted 3.10% to fail, 2.90% failed",
        "not synced",
        "HALTED: web-2",
        "prometheus: no answer",
        "mode: fly is no mode",
    ):
        assert part in text
    assert ["n1", "75%", "<unknown>", "1", "NotReady"] in [line.split() for line in text.splitlines()]
    assert ["shop/web-1", "n1", "0.40", "0.8", "<none>"] in [line.split() for line in text.splitlines()]


def test_status_says_where_replacements_landed() -> None:
    steering = SteeringView(
        "auto", policy_works=True, tried=True, problem="", landed_planned=7, landed_elsewhere=2, landed_source=1
    )
    assert steering_line(steering) == (
        "steering auto, policy works; 7 of 10 replacements landed as planned (2 elsewhere, 1 back on the source)"
    )


def test_empty_cells_are_shown_as_none() -> None:
    assert table(("a", "b"), [("1", ""), (None, "x")]).splitlines() == ["A       B", "1       <none>", "<none>  x"]


def test_a_long_history_is_fetched_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    queries: list[dict[str, str]] = []

    def answer(_server: str, _path: str, kind: Any, **query: str) -> Any:
        queries.append(query)
        newest = int(query.get("before", "451")) - 1
        ids = range(newest, max(newest - int(query["limit"]), 0), -1)
        return kind(tuple(HistoryEntry(each, NOW, "c", HistoryKind.WAIT, None, "", "") for each in ids))

    monkeypatch.setattr("reactor.cli.history.fetch", answer)

    def request_for(limit: int) -> HistoryRequest:
        return HistoryRequest(
            None, limit, waits=True, plan_id=None, problem_id=None, output="table", server="http://there"
        )

    assert len(history_rows(request_for(420))) == 420
    assert [query["limit"] for query in queries] == ["200", "200", "20"]
    assert len(history_rows(request_for(1000))) == 450
