"""KSE's experiment on real nodes: what is run there, how it is scaled, and what the report makes of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from loadtests.experiments.kse.arms import ARMS, NONE, OURS
from loadtests.experiments.kse.design import NODES, Scenario
from loadtests.experiments.kse.judging import measured, recorded
from loadtests.experiments.kse.main import KseOptions, main
from loadtests.experiments.kse.real import main as real_main
from loadtests.experiments.kse.real.bench import Course, record_of
from loadtests.experiments.kse.real.design import (
    LAB_NODES,
    LOAD_SECONDS,
    SNAPSHOTS,
    SUBSET,
    lab_apps,
    real_settings,
    requests_of,
)
from loadtests.experiments.kse.real.main import run_real
from loadtests.experiments.kse.real.records import RealRun
from loadtests.experiments.kse.real.report import RealPart
from loadtests.experiments.kse.real.seen_moves import SeenMoves
from loadtests.experiments.kse.report import write_report
from loadtests.experiments.kse.results import About, Run
from loadtests.experiments.stable.real.machine import Reading
from loadtests.nodes.apps import deployment
from loadtests.nodes.spec import check_nodes
from loadtests.record_file import RecordFile
from loadtests.workloads.load_tools import LoadResult
from loadtests.workloads.samples import RequestOutcome, RequestSample
from reactor.decision.decide import Decision, Trigger
from reactor.errors import InputError
from reactor.execution.cycle_outcome import Outcome
from reactor.settings.model import Mode
from tests.support.cluster import make_pod
from tests.support.moves import make_move

HOT = SUBSET[0]
ABOUT = About("m", "0.1.0", "3.11", "2 cores")


def real_run(scenario: str, arm: str, seed: int, imbalance: float, moves: int = 0) -> RealRun:
    trace = [[imbalance, 0.0, 0.0, 0.0]] * SNAPSHOTS
    run = Run(scenario, arm, seed, imbalance, imbalance / 4, moves, 0, 100.0, 20.0, 0, trace)
    fields = {name: getattr(run, name) for name in Run.__struct_fields__}
    return RealRun(
        **fields, requests=8400, request_ms=1.6, outside_idle=0.5, late_ms=0.1, unsent=0.0, delay_ms=1.0,
        saturated=False, at="2026-01-01T00:00:00+00:00",
    )  # fmt: skip


def simulated(scenario: str, arm: str, seed: int) -> Run:
    trace = [[100.0, 0.0, 0.0, 0.0]] * SNAPSHOTS + [[900.0, 0.0, 0.0, 0.0]] * 5
    return Run(scenario, arm, seed, 400.0 + seed, 100.0, 3, 0, 99.0, 130.0, 0, trace)


def test_the_subset_is_the_synthetic_app_at_constant_rates_by_cpu() -> None:
    assert len(SUBSET) == 4
    assert {(each.workload, each.pods, each.rate, each.metric) for each in SUBSET} == {
        ("synthetic", 20, "constant", "cpu")
    }
    assert all((each.name, NONE) in recorded() for each in SUBSET)


def test_all_pods_fit_on_one_node_by_their_requests_so_that_balancers_may_place_them_anywhere() -> None:
    check_nodes(LAB_NODES)
    assert [node.name for node in LAB_NODES] == list(NODES)
    pods = [deployment(app, "shop")["spec"]["template"]["spec"]["containers"][0] for app in lab_apps(HOT)]
    assert [pod["args"] for pod in pods] == [["counter"]] * 20
    assert sum(int(pod["resources"]["requests"]["cpu"].removesuffix("m")) for pod in pods) < LAB_NODES[0].millicores


def test_requests_are_drawn_one_by_one_and_the_same_for_every_arm() -> None:
    drawn = requests_of(HOT, 1)
    assert len(drawn) == round(6 * HOT.target * LOAD_SECONDS)
    assert drawn == requests_of(HOT, 1) != requests_of(HOT, 2)
    found = Counter(drawn)
    for app, share in zip(HOT.apps(), HOT.shares(), strict=True):
        assert found[app] == pytest.approx(share * len(drawn), rel=0.5, abs=15)


@pytest.mark.parametrize("arm", [name for name, arm in ARMS.items() if arm.settings is not None])
def test_every_arm_acts_six_times_as_fast_with_the_real_prometheus(arm: str) -> None:
    settings = ARMS[arm].settings
    assert settings is not None
    found = real_settings(settings, "cpu", "http://10.200.0.1:9090")
    assert found.mode is Mode.ACT
    assert found.triggers.rematch_interval == 10
    assert found.metrics.prometheus.url == "http://10.200.0.1:9090"
    assert found.metrics.prometheus.queries.pod_cpu == ""
    assert "[2m]" not in found.metrics.prometheus.queries.node_cpu
    assert (found.decision.cooldown, found.decision.settle) == ((10, 10) if arm == OURS else (0, 0))
    assert found.execution.max_moves_in_flight == (1 if arm == OURS else 1000)
    assert found.execution.ready_deadline == 30


def course(**changes: Any) -> Course:
    """Two intervals of 10 s: node after node 20 % busier, and one request of ten refused."""
    used = [{node: at * (1 + index) / 100 for index, node in enumerate(NODES)} for at in (0.0, 10.0, 20.0)]
    readings = [Reading(100.0 + 10 * at, at * 5.0, pods) for at, pods in enumerate(used)]
    samples = [RequestSample("pod-1", at / 10, 0.02, RequestOutcome.OK) for at in range(9)]
    samples.append(RequestSample("pod-2", 1.0, 10.0, RequestOutcome.REFUSED))
    load = LoadResult(samples, 1e9, 0.2, 0.0)
    return replace(Course(readings, load, [("a", "n1", "n2"), ("a", "n2", "n1")], 1, 1.0), **changes)


def test_a_run_is_recorded_in_millicores_of_the_original_nodes() -> None:
    found = record_of(HOT, OURS, 2, course())
    assert found.trace == [pytest.approx([100.0, 200.0, 300.0, 400.0])] * 2
    assert (found.imbalance, found.node_mean) == pytest.approx((300.0, 250.0))
    assert (found.key, found.moves, found.returns, found.restarts) == ((HOT.name, OURS, 2), 2, 1, 1)
    assert (found.availability, found.p95_ms, found.requests) == pytest.approx((90.0, 20.0, 10))
    assert found.request_ms == pytest.approx(200.0)
    assert not found.saturated


def test_without_any_answer_there_is_still_a_record() -> None:
    none = LoadResult([RequestSample("pod-1", 0.0, 10.0, RequestOutcome.TIMEOUT)], 1e9, 0.2, 0.0)
    found = record_of(HOT, OURS, 1, course(load=none, moves=[], delay_ms=None))
    assert (found.availability, found.p95_ms, found.saturated) == (0.0, 0.0, True)


def test_moves_count_once_they_have_begun_unless_they_came_to_nothing() -> None:
    seen = SeenMoves()

    def tell(pod: str, target: str, state: str, **fields: Any) -> None:
        move = make_move(make_pod(pod), target, state, **fields)
        seen.listen("cycle", None, Outcome(Decision(0.0, Trigger.INTERVAL), executed=(move,)))

    tell("late-1", "n3", "evicted", began=20.0)
    tell("early-1", "n2", "planned")
    tell("early-1", "n2", "evicted", began=10.0)
    tell("early-1", "n2", "done", began=10.0, ended=12.0)
    tell("waits-1", "n2", "planned")
    tell("lost-1", "n2", "failed", began=11.0)
    assert [target for _, _, target in seen.steps()] == ["n2", "n3"]


class FakeBench:
    ran: ClassVar[list[tuple[str, str, int]]] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, apps: list[str]) -> AsyncIterator[FakeBench]:
        assert apps == HOT.apps()
        yield cls()

    async def run(self, scenario: Scenario, arm: str, repeat: int) -> RealRun:
        self.ran.append((scenario.name, arm, repeat))
        if len(self.ran) == 4:
            raise KeyboardInterrupt
        return real_run(scenario.name, arm, repeat, 100.0)


async def test_what_was_run_is_kept_and_not_run_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(real_main, "RealBench", FakeBench)
    monkeypatch.setattr(FakeBench, "ran", [])
    file = RecordFile(tmp_path / "real-runs.jsonl", RealRun)
    with pytest.raises(KeyboardInterrupt):
        await run_real([HOT], 2, file)
    assert len(file.read()) == 3
    await run_real([HOT], 2, file)
    assert Counter(run.key for run in file.read()) == {(HOT.name, arm, repeat): 1 for arm in ARMS for repeat in (1, 2)}
    assert len(FakeBench.ran) == 11
    await run_real([HOT], 2, file)
    assert len(FakeBench.ran) == 11


def real_runs(repeats: int) -> list[RealRun]:
    values = {NONE: 100.0, "greedy": 60.0, "refine": 70.0, "balance": 50.0, OURS: 50.0}
    moves = {NONE: 0, "greedy": 40, "refine": 5, "balance": 3, OURS: 2}
    return [
        real_run(each.name, arm, seed, values[arm] + seed, moves[arm])
        for each in SUBSET
        for arm in ARMS
        for seed in range(1, repeats + 1)
    ]


def test_the_report_has_the_real_runs_beside_the_same_minutes_of_the_simulated_ones(tmp_path: Path) -> None:
    beside = [simulated(each.name, arm, seed) for each in SUBSET for arm in ARMS for seed in (1, 2)]
    text = write_report(tmp_path, beside, ABOUT, real_runs(2)).read_text()
    assert "40 runs; in 0 of them" in text
    assert f"<td>{HOT.name}</td><td>ours</td><td>52 +/- 1, better</td><td>100 +/- 0, same</td>" in text
    found = json.loads((tmp_path / "summary.json").read_text())["real"]
    assert (found["scenarios"], found["repeats"], found["runs"]) == (4, 2, 40)
    assert [item["verdict"] for item in found["goal"]] == ["reached"] * 4
    assert found["goal"][0]["figures"] == "ours 4, greedy 4, refine 4 of 4"
    assert (tmp_path / "real-runs.csv").read_text().count("\n") == 41


def test_one_repeat_judges_nothing_and_none_says_how_to_run_them(tmp_path: Path) -> None:
    once: Any = RealPart(real_runs(1), []).summary()
    assert {item["verdict"] for item in once["goal"]} == {"cannot be judged"}
    assert RealPart([], []).summary() == {}
    page = write_report(tmp_path, [simulated(HOT.name, NONE, 1)], ABOUT)
    assert "Not run: it needs real nodes" in page.read_text()
    assert measured(real_runs(1))[HOT.name, OURS].moves == 2


def test_words_that_leave_nothing_for_the_real_nodes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no scenario's name has memory; one is: synthetic 20 pods 20 constant"):
        main(KseOptions(1, 1, True, tmp_path, None, ("memory",), real=True))
