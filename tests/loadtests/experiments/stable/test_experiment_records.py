from __future__ import annotations

import csv
from pathlib import Path

import pytest
from msgspec.structs import replace

from loadtests.experiments.stable.design import KUBE_SCHEDULER, OUR_LIVE, short_design
from loadtests.experiments.stable.goal import GoalVerdict
from loadtests.experiments.stable.records import About, DataFolder, latest, write_csv
from loadtests.experiments.stable.report.writing import verdict_lines, write_report
from reactor.errors import InputError
from tests.support.experiment import failing, make_record, series


def make_about(world: str) -> About:
    return About(
        world=world,
        tool="vegeta",
        started="2026-01-01T00:00:00+00:00",
        form="short",
        capacity=4.9,
        cores=1.25,
        nodes={node.name: node.cores for node in short_design(()).nodes},
        versions={"kubelet": "1.36.3"},
        settings={"mode": "act"},
        notes=("a note",),
    )


def test_records_come_back_and_a_line_that_was_cut_off_does_not(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    data.begin(make_about("real"))
    record = make_record(KUBE_SCHEDULER, 1, 50, 0.9, placement={"app-01": "node1"})
    data.add(record)
    with (tmp_path / "real.jsonl").open("ab") as lines:
        lines.write(b'{"world": "re')
    assert data.records("real") == [record]
    data.repair("real")
    data.add(record)
    assert data.records("real") == [record, record]
    assert data.about("real") == make_about("real")


def test_data_of_another_version_are_refused(tmp_path: Path) -> None:
    (tmp_path / "real.jsonl").write_text('{"something": "else"}\n')
    with pytest.raises(InputError, match="without --resume"):
        DataFolder(tmp_path).records("real")


def test_of_a_run_that_was_begun_twice_the_later_one_counts() -> None:
    twice = [make_record(KUBE_SCHEDULER, 1, rate, 0.5) for rate in (50, 60)]
    again = [make_record(KUBE_SCHEDULER, 1, rate, 0.9) for rate in (50, 60, 70)]
    assert latest([*twice, *again]) == again


def test_the_csv_has_a_line_per_step(tmp_path: Path) -> None:
    write_csv([replace(record, late_ms=1.5, unsent=0.0) for record in failing(1)], tmp_path / "steps.csv")
    rows = list(csv.DictReader((tmp_path / "steps.csv").read_text().splitlines()))
    assert len(rows) == 11
    assert (rows[0]["phase"], rows[0]["paper_rate"], rows[0]["valid"]) == ("default", "50", "True")
    assert (rows[0]["late_ms"], rows[0]["unsent"], rows[0]["delay_ms"]) == ("1.5", "0", "")


def test_the_report_is_one_page_without_references_to_elsewhere(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    for world in ("real", "simulated"):
        data.begin(make_about(world))
        for seed in (1, 2, 3):
            for record in (*failing(seed), *series(OUR_LIVE, seed, {}), *series(OUR_LIVE.frozen(), seed, {})):
                data.add(replace(record, world=world))
    page = write_report(data).read_text()
    for word in ("The goal", "reached", "paper 0.9", "real nodes", "simulated time", "a note", "9 (4)"):
        assert word in page
    said = verdict_lines(data)
    assert len(said) == 12
    assert {line.split(":")[0] for line in said} == {"real nodes", "simulated time"}
    assert {line.split(": ")[1] for line in said} <= {verdict.value for verdict in GoalVerdict}
    assert 'src="http' not in page
    assert "<link" not in page
    assert (tmp_path / "summary.json").read_text().count('"verdict"') == 12
    assert len((tmp_path / "steps.csv").read_text().splitlines()) == 1 + 2 * 99


def test_a_page_of_one_world_that_was_stopped_says_both(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    data.begin(make_about("simulated"))
    for seed in (1, 2):
        for record in (*failing(seed), *series(OUR_LIVE, seed, {}, valid=seed == 1)):
            data.add(replace(record, world="simulated"))
    page = write_report(data, partial=True).read_text()
    for words in ("Partial: the experiment was stopped", "run with --real as root", "1.000 n=1", "11 of 22"):
        assert words in page
    assert "Partial" not in write_report(data).read_text()


def test_there_is_no_report_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing was measured"):
        write_report(DataFolder(tmp_path))
