from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadtests.benchmarks import against_revision
from loadtests.benchmarks.against_revision import MeasuredFigure, Session, main
from loadtests.benchmarks.paired_figures import FigureComparison, Figures, FigureVerdict, Pair, as_table, compare
from loadtests.tools.revisions import Version, two_versions
from reactor.errors import InputError

OLD = Version("old", "a" * 40, Path("old/bin/python"), Path("old/tree"))
NEW = Version("new", "b" * 40, Path("new/bin/python"), Path("new/tree"))


def comparison(*ratios: float) -> FigureComparison:
    return FigureComparison(
        "figure", tuple(Pair(10.0 + number, (10.0 + number) * each) for number, each in enumerate(ratios))
    )


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((0.90, 0.91, 0.89, 0.90, 0.92), FigureVerdict.BETTER),
        ((1.10, 1.11, 1.09, 1.10, 1.12), FigureVerdict.WORSE),
        ((1.10, 0.91, 1.09, 0.90, 1.02), FigureVerdict.NOISE),
        ((1.010, 1.011, 1.009, 1.010, 1.012), FigureVerdict.NOISE),
        ((1.0, 1.0, 1.0), FigureVerdict.NOISE),
        ((1.5, 1.5), FigureVerdict.TOO_FEW),
    ],
)
def test_a_verdict_needs_a_clear_difference_of_some_size(ratios: tuple[float, ...], verdict: FigureVerdict) -> None:
    assert comparison(*ratios).verdict is verdict


def test_ratios_are_taken_round_by_round() -> None:
    """Both versions are twice as slow in the second round: the machine was busy."""
    found = FigureComparison("figure", (Pair(1.0, 1.1), Pair(2.0, 2.2), Pair(1.0, 1.1)))
    assert found.ratios == pytest.approx([1.1, 1.1, 1.1])
    assert (found.old, found.new) == (1.0, 1.1)
    assert found.interval == pytest.approx((1.1, 1.1))
    assert found.verdict is FigureVerdict.WORSE


def test_a_figure_that_one_version_lacks_or_that_is_zero_is_left_out() -> None:
    rounds: list[tuple[Figures, Figures]] = [({"a": 1.0, "b": 1.0, "c": 0.0}, {"a": 2.0, "c": 1.0})]
    assert [(found.name, found.pairs) for found in compare(rounds)] == [("a", (Pair(1.0, 2.0),))]


def test_the_table_has_medians_ratio_spread_and_verdict() -> None:
    text = as_table([comparison(0.90, 0.91, 0.89)])
    assert "0.890 .. 0.910" in text
    assert "better" in text
    assert len(text.splitlines()) == 2


def test_the_versions_alternate_and_the_first_round_is_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against_revision, "_run", lambda *_, **__: "")
    order: list[str] = []

    def measure(version: Version) -> Figures:
        order.append(version.name)
        return {"x": float(len(order))}

    session = Session([MeasuredFigure("m", "about", measure, 1.0)], 2)
    session.run(OLD, NEW)
    assert order == ["new", "old", "old", "new", "new", "old"]
    assert session.pairs == [("m", {"x": 3.0}, {"x": 4.0}), ("m", {"x": 6.0}, {"x": 5.0})]
    assert session.seconds_left() == 0


def test_an_interrupted_run_shows_its_complete_pairs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = 0

    def measure(version: Version) -> Figures:
        nonlocal calls
        calls += 1
        if calls == 8:
            raise KeyboardInterrupt
        return {"x": 1.0}

    @contextmanager
    def versions(revision: str) -> Iterator[tuple[Version, Version]]:
        yield OLD, NEW

    monkeypatch.setattr(against_revision, "_run", lambda *_, **__: "")
    monkeypatch.setattr(against_revision, "two_versions", versions)
    monkeypatch.setattr(against_revision, "MEASUREMENTS", (MeasuredFigure("m", "about", measure, 1.0),))
    monkeypatch.setattr("sys.argv", ["against_revision", "REV", "-o", "json"])
    assert main() == 130
    document = json.loads(capsys.readouterr().out)
    assert (document["old"], document["complete"]) == (OLD.commit, False)
    assert [len(figure["ratios"]) for figure in document["figures"]] == [2]


def test_an_unknown_revision_is_refused() -> None:
    with pytest.raises(InputError, match="no such revision"), two_versions("no-such-revision"):
        pass
