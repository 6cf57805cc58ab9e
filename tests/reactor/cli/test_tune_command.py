from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from reactor.replay import tuning
from tests.reactor.replay.recorded_days import NODES, PLACES, filled
from tests.support.command import Command
from tests.support.dump import deployment, node, pod, replica_set


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setattr(tuning, "REPLAYS", 2)
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
