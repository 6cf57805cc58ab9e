"""The report of the autoscaling test: figures of each arm, and verdicts that few bursts cannot buy."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from loadtests.experiments.hpa.design import ARMS, LEAST, PREDICTED, PROMETHEUS, autoscaler, needed
from loadtests.experiments.hpa.report import ArmRecord, BurstRecord, enough_at, judgements, write_report
from reactor.errors import InputError

SECONDS = 300.0


def arm(*, enough: float, failed: int, most: int = 12) -> ArmRecord:
    """Has its least replicas at first, and its most from a second on."""
    times = [float(second) for second in range(-2, 300, 2)]
    ready = [most if second >= enough else LEAST for second in times]
    return ArmRecord(9000, [1.0] * failed, 0.2, times, ready, ready)


def burst(number: int, *, predicted: ArmRecord, prometheus: ArmRecord, session: int = 1) -> BurstRecord:
    arms = {each.name: prometheus for each in ARMS} | {PREDICTED.name: predicted}
    return BurstRecord(session, number, SECONDS, 9000.0, "2026-11-18T20:00:00+00:00", arms)


def same(number: int) -> BurstRecord:
    return burst(number, predicted=arm(enough=60, failed=90), prometheus=arm(enough=60, failed=90))


def better(number: int, by: int) -> BurstRecord:
    return burst(number, predicted=arm(enough=0, failed=90 - by), prometheus=arm(enough=60, failed=90))


def verdicts(*records: BurstRecord) -> list[str]:
    return [verdict for _, _, verdict in judgements(records)]


def test_the_first_burst_may_be_alike_the_later_ones_must_be_better() -> None:
    assert verdicts(same(1), better(2, 40), better(3, 44), better(4, 42)) == ["reached"] * 5
    assert verdicts(same(1), same(2), same(3), same(4)) == ["reached", *["not reached"] * 4]


def test_the_second_burst_counts_as_a_later_one_and_is_told_apart() -> None:
    learned = [better(number, 40 + number) for number in (3, 4, 5)]
    assert verdicts(same(1), same(2), *learned) == ["reached", "not reached", "not reached", "reached", "reached"]


def test_what_differs_by_chance_is_not_reached() -> None:
    assert verdicts(same(1), better(2, 60), better(3, -50), better(4, 10))[1] == "not reached"


def test_a_worse_first_burst_is_said() -> None:
    assert verdicts(better(1, -500), better(2, 40), better(3, 41))[0] == "not reached"
    assert verdicts(better(1, -30), better(1, -31), better(1, -32))[0] == "not reached", "little, but always"
    assert verdicts(better(1, -30))[0] == "reached", "less than the margin, once"
    assert verdicts(same(1), better(2, 40))[1:] == ["cannot be judged"] * 4, "one burst shows nothing"


def test_enough_follows_the_load_down() -> None:
    """Four replicas are enough when two thirds of the load have gone."""
    record = burst(1, predicted=arm(enough=1000, failed=0), prometheus=arm(enough=0, failed=0, most=4))
    assert enough_at(record, PROMETHEUS.name) == pytest.approx(188, abs=2)
    assert needed(188, SECONDS) == pytest.approx(4.48, abs=0.01)
    assert enough_at(record, PREDICTED.name) > 230


def test_the_files(tmp_path: Path) -> None:
    page = write_report(tmp_path, [same(1), better(2, 40)], partial=True)
    text = page.read_text()
    assert "Partial" in text
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["arms"]["predicted"]["second"]["failed"] == [50]
    assert summary["arms"]["predicted"]["first"]["maximum"] == [12]
    with (tmp_path / "bursts.csv").open() as file:
        assert [row["failed"] for row in csv.DictReader(file) if row["arm"] == "predicted"] == ["90", "50"]
    with pytest.raises(InputError, match="nothing was measured"):
        write_report(tmp_path, [], partial=False)


def test_the_arms_differ_in_nothing_but_their_metrics() -> None:
    documents = [autoscaler(arm) for arm in ARMS]
    metrics = [document["spec"].pop("metrics") for document in documents]
    for document, arm_ in zip(documents, ARMS, strict=True):
        assert document["metadata"].pop("name") == document["spec"]["scaleTargetRef"].pop("name") == arm_.name
    assert documents[0] == documents[1] == documents[2]
    assert [[each["type"] for each in found] for found in metrics] == [["Resource"], ["External"], ["External"] * 2]
    assert metrics[2][1]["external"]["metric"]["selector"]["matchLabels"]["horizon"] == "1m"
