"""Both sides brought together, with a small program in the place of the real oracle."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from loadtests.oracle.__main__ import main
from loadtests.oracle.comparison import ClusterResult, compare
from loadtests.oracle.differences import Danger
from loadtests.oracle.judge import OracleFailed, Question, open_oracle
from loadtests.oracle.random_cluster import RandomCluster, random_cluster
from loadtests.oracle.reproduction import smallest_case
from loadtests.same_plans.draw import Json

PROGRAM = """#!{python}
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "load" in asked:
        answer = {{"stored": asked["load"]}}
    else:
        answer = {{"answers": [{answer} for each in asked["judge"]]}}
    print(json.dumps(answer), flush=True)
"""
Fake = Callable[[str], Path]


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """`answer` is a Python expression of the verdict on `each` question."""

    def make(answer: str) -> Path:
        path = tmp_path / "oracle"
        path.write_text(PROGRAM.format(python=sys.executable, answer=answer))
        path.chmod(0o755)
        return path

    return make


NO = "{'fits': False, 'plugin': 'NodeName', 'message': 'no'}"


def shop(node: Json | None = None) -> RandomCluster:
    """One pod on the first of two nodes."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    nodes = [
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "uid": name}, "status": status, **(node or {})}
        for name in ("n1", "n2")
    ]
    spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "app"}]}
    meta = {"name": "web", "namespace": "shop", "uid": "uid-web", "creationTimestamp": "2026-11-16T12:00:00Z"}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}
    return RandomCluster(0, (), (*nodes, pod))


async def result_of(cluster: RandomCluster, program: Path) -> ClusterResult:
    async with open_oracle(program) as oracle:
        return await compare(cluster, oracle)


async def test_what_both_allow_is_no_difference(fake: Fake) -> None:
    result = await result_of(shop(), fake("{'fits': True}"))
    assert (result.clusters, result.pairs, result.fitting, result.found) == (1, 1, 1, [])
    assert result.clean


async def test_what_only_we_allow_is_dangerous(fake: Fake) -> None:
    result = await result_of(shop(), fake(NO))
    (found,) = result.dangerous
    assert found.difference.question == Question("uid-web", "n2")
    assert not result.clean


async def test_what_only_we_refuse_is_cautious_and_says_why(fake: Fake) -> None:
    taints = {"spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}}
    result = await result_of(shop(taints), fake("{'fits': True}"))
    (found,) = result.found
    assert found.difference.danger is Danger.CAUTIOUS
    assert "dedicated" in found.difference.opinion.reason
    assert result.clean


async def test_every_planner_is_asked_for_its_moves(fake: Fake) -> None:
    result = await result_of(random_cluster(0), fake("{'fits': True}"))
    planners = {"stable", "balance", "greedy", "refine", "genetic", "network", "latency", "function"}
    assert planners <= set(result.moves)
    assert result.moves.total() > 0
    assert not result.dangerous


async def test_a_cluster_that_the_api_server_refuses_is_left_out(fake: Fake) -> None:
    program = fake("{'fits': True}")
    text = program.read_text().replace(
        '{"stored": asked["load"]}', '{"invalid": [{"object": "Pod a", "message": "no"}]}'
    )
    program.write_text(text)
    result = await result_of(shop(), program)
    assert (result.clusters, result.pairs, result.refused) == (0, 0, ["seed 0: Pod a: no"])


async def test_a_failure_of_ours_is_counted_with_its_seed(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr("loadtests.oracle.ours.fits_now", fail)
    result = await result_of(shop(), fake("{'fits': True}"))
    assert [str(each) for each in result.failures] == ["seed 0: ValueError: odd"]
    assert not result.clean


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("#!/bin/sh\nread line\n", "the oracle ended"),
        ('#!/bin/sh\nread line\necho \'{"error": "what?"}\'\n', r"refused the request: what\?"),
    ],
)
async def test_an_oracle_that_does_not_answer_is_an_error(tmp_path: Path, program: str, words: str) -> None:
    path = tmp_path / "oracle"
    path.write_text(program)
    path.chmod(0o755)
    async with open_oracle(path) as oracle:
        with pytest.raises(OracleFailed, match=words):
            await oracle.judge([Question("uid-web", "n2")])


async def test_a_silent_oracle_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadtests.oracle.judge._SECONDS_TO_ANSWER", 0.05)
    path = tmp_path / "oracle"
    path.write_text("#!/bin/sh\nexec sleep 30\n")
    path.chmod(0o755)
    monkeypatch.setattr("loadtests.oracle.judge._SECONDS_TO_END", 0.05)
    async with open_oracle(path) as oracle:
        with pytest.raises(OracleFailed, match=r"did not answer within 0\.05 s"):
            await oracle.load([])


async def test_the_smallest_case_of_a_danger_is_one_pod_and_one_node(fake: Fake) -> None:
    async with open_oracle(fake(NO)) as oracle:
        result = await compare(random_cluster(0), oracle)
        pair = next(each for each in result.dangerous if each.difference.asked_by == "pair")
        items = await smallest_case(pair, oracle)
    asked = pair.difference.question
    assert sorted(item["metadata"]["uid"] for item in items) == [asked.uid, f"uid-{asked.node}"]


@pytest.mark.parametrize("seeds", ["", "many", "5-2", "0", "3-x"])
def test_seeds_that_make_no_sense_are_refused(
    seeds: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["oracle", "--seeds", seeds])
    assert main() == 2
    assert "--seeds" in capsys.readouterr().err
