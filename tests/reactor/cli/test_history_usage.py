from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from reactor.history.levels import Axis
from reactor.history.series import SeriesIndex
from reactor.record.usage_reader import Subject, subjects_of
from storage.rows import UsageEventRow
from storage.store import Store
from tests.reactor.history.builders import minute
from tests.support.command import Command

START = 1_700_006_400


@pytest.fixture
def database(tmp_path: Path) -> Path:
    async def fill() -> None:
        async with await Store.open(tmp_path / "rematch.db") as store:
            series = SeriesIndex()
            for at in range(START, START + 7200, 60):
                cores = 1.0 if at < START + 3600 else 2.0
                samples = {Axis.CPU: {"shop/web-1": [cores, cores * 1.5]}, Axis.MEMORY: {"shop/web-1": [5e8]}}
                store.add_chunks(*minute(series, at, samples))
                store.add_chunks(*minute(series, at, {Axis.CPU: {"n1": [3.0]}}, "node"))
                store.add_chunks(*minute(series, at, {Axis.CPU: {"shop/ReplicaSet/web": [1.0]}}, "workload"))
            store.add_series(*series.take_changed())
            store.add_usage_events(UsageEventRow(START + 60.0, "workload", "shop/ReplicaSet/web", "rolled out"))

    asyncio.run(fill())
    return tmp_path / "rematch.db"


@pytest.fixture
def usage(rematch: Command, database: Path) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        done = rematch("history", "usage", *arguments, "--store", database)
        assert done.code == 0, done.err
        return done.out

    return run


def test_a_pod_as_csv(usage: Callable[..., str]) -> None:
    rows = list(csv.DictReader(io.StringIO(usage("shop/web-1", "--hours", "1", "-o", "csv"))))
    assert len(rows) == 60
    assert rows[0]["time"] == "2023-11-15T01:00:00Z"
    assert float(rows[0]["cpu_mean"]) == pytest.approx(2.5, rel=0.006)
    assert float(rows[0]["cpu_max"]) == pytest.approx(3.0, rel=0.006)


def test_a_workload_as_json(usage: Callable[..., str]) -> None:
    found = json.loads(usage("deploy/web", "-n", "shop", "--hours", "2", "-o", "json"))
    assert (found["kind"], found["name"], found["step"]) == ("workload", "shop/ReplicaSet/web", 60)
    assert [axis["axis"] for axis in found["axes"]] == ["cpu"]
    assert found["events"] == [{"at": START + 60.0, "text": "rolled out"}]


def test_a_chart_in_the_terminal(usage: Callable[..., str]) -> None:
    text = usage("shop/web-1", "--hours", "2")
    assert text.startswith("pod shop/web-1, in steps of 1 min, UTC\n\ncpu (cores)\n")
    cpu = text.split("memory (bytes)")[0].splitlines()
    assert cpu[3].split()[0] in ("3", "2.99", "3.01")
    assert max(len(line) for line in cpu) <= 80
    assert "█" in cpu[-4]
    assert "memory (bytes)\n" in text
    assert "n1" not in usage("node/n1", "-o", "csv").splitlines()[0]


def test_without_a_namespace_it_is_found_in_any(usage: Callable[..., str]) -> None:
    assert usage("deployment/web").startswith("workload shop/web (Deployment or ReplicaSet), in steps")
    assert usage("web-1").startswith("pod shop/web-1,")
    assert "· maximum" in usage("web-1")


def test_the_first_of_several_namespaces_is_shown_and_the_others_are_named(
    usage: Callable[..., str], database: Path
) -> None:
    async def add() -> None:
        async with await Store.open(database) as store:
            series = SeriesIndex(await store.series())
            store.add_chunks(*minute(series, START, {Axis.CPU: {"office/web-1": [1.0]}}))
            store.add_series(*series.take_changed())

    asyncio.run(add())
    shown = usage("web-1", "--hours", "24").splitlines()
    assert shown[0].startswith("pod office/web-1,")
    assert shown[1] == "of this name, too (-n NAMESPACE): shop/web-1"
    assert usage("web-1", "-n", "shop").startswith("pod shop/web-1,")


def test_an_unknown_name_says_how_to_write_one(rematch: Command, database: Path) -> None:
    done = rematch("history", "usage", "nobody", "--store", database)
    assert done.code == 2
    assert "NAMESPACE/POD" in done.err


@pytest.mark.parametrize(
    ("name", "namespace", "expected"),
    [
        ("node/n1", "", [("node", "n1")]),
        ("sts/db", "shop", [("workload", "shop/StatefulSet/db")]),
        ("pod/db-0", "", [("pod", "default/db-0")]),
    ],
)
def test_names_as_for_kubectl(name: str, namespace: str, expected: list[Subject]) -> None:
    assert list(subjects_of(name, namespace)) == expected


def test_a_bare_name_may_be_anything() -> None:
    found = list(subjects_of("web", "shop"))
    assert found[0] == ("pod", "shop/web")
    assert found[-1] == ("node", "web")
    assert ("node", "shop/web") not in list(subjects_of("shop/web"))
