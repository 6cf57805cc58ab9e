from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from loadtests.embedded.resources import CONFIGMAPS
from reactor.cli.tune import TuneRequest, live_cluster, write_settings
from reactor.cluster.kinds import ObjectName
from reactor.errors import NotFound
from reactor.replay import tuning
from reactor.replay.answer import Candidate
from tests.reactor.replay.recorded_days import NODES, PLACES, filled
from tests.support.command import Command
from tests.support.dump import deployment, node, pod, replica_set
from tests.support.shop import open_shop


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setattr(tuning, "LEAST_REPLAYS", 2)
    monkeypatch.setattr(tuning, "MOST_REPLAYS", 2)
    monkeypatch.setattr(tuning, "GATE_REPLAYS", 3)
    asyncio.run(filled(tmp_path / "rematch.db"))
    objects: list[dict[str, Any]] = [node(name, str(int(cores))) for name, cores in NODES.items()]
    for name, place in PLACES.items():
        objects += [pod(name, place), replica_set(name[0]), deployment(name[0])]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), encoding="utf-8")
    return dump, tmp_path / "rematch.db"


def test_the_answer_as_a_table_and_a_page(rematch: Command, files: tuple[Path, Path], tmp_path: Path) -> None:
    dump, store = files
    page = tmp_path / "tune.html"
    given = ["-f", dump, "--store", store, "--set", "mode=act", "--jobs", "1", "--report", page]
    done = rematch("tune", *given)
    assert done.code == 0, done.err
    assert "unhappy pod-minutes: " in done.out
    assert "reproduced" in done.out
    assert "recommended: mode act: " in done.out
    assert "moves per day" in done.out
    assert "in force: nothing" in done.out
    text = page.read_text(encoding="utf-8")
    assert "<svg" in text
    assert "<polyline" in text


def test_the_answer_as_json(rematch: Command, files: tuple[Path, Path]) -> None:
    dump, store = files
    done = rematch("tune", "-f", dump, "--store", store, "--set", "mode=act", "--jobs", "1", "-o", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["gate"]["passed"]
    assert found["recommended"] == {"mode": "act"}
    assert found["settings"][1]["unhappyMinutes"]["high"] < 0


def test_a_report_of_another_kind_is_refused(rematch: Command, files: tuple[Path, Path]) -> None:
    dump, store = files
    done = rematch("tune", "-f", dump, "--store", store, "--report", "tune.png")
    assert done.code == 2
    assert ".html or .svg" in done.err


def request(kubeconfig: Path) -> TuneRequest:
    return TuneRequest((), Path("none"), None, None, (), 3, 1, "table", None, True, True, str(kubeconfig), None)


async def test_the_cluster_is_read_and_the_settings_are_written(tmp_path: Path) -> None:
    name, candidate = ObjectName("rematch", "rematch"), Candidate("act", {"happiness.threshold": 0.8})
    async with open_shop() as shop:
        asked = request(shop.cluster.kubeconfig(tmp_path / "kubeconfig"))
        view = await live_cluster(asked)
        assert sorted(view.nodes) == ["n1", "n2"]
        assert len(view.pods) == 2
        with pytest.raises(NotFound):
            await write_settings(asked, name, candidate)
        api = shop.cluster.api
        text = "mode: act\nhappiness:\n  goodwill: 4\n"
        api.create(
            CONFIGMAPS, {"metadata": {"name": "rematch", "namespace": "rematch"}, "data": {"settings.yaml": text}}
        )
        await write_settings(asked, name, candidate)
        stored = shop.cluster.store.find(CONFIGMAPS, "rematch", "rematch")
        assert stored is not None
        written = stored.obj["data"]["settings.yaml"]
    assert written == "mode: act\nhappiness:\n  goodwill: 4\n  threshold: 0.8\n"
