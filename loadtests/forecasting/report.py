"""The measured tables as text, JSON, CSV and a page."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import plotly.graph_objects as go

from loadtests.forecasting.evaluation import SELECTED, Evaluation
from loadtests.forecasting.speed import Speed
from loadtests.report_page import ReportPage, Table

ERROR_BARS = {"Azure": (0.67, 0.69), "Google": (0.71, 0.68), "pools": (0.90, 0.81), "k8s pods": (0.74, 0.73)}
ERROR_MARGIN = 0.01
SLACK_BARS = {"Azure": 0.110, "Google": 0.054, "pools": 0.254, "k8s pods": 0.52}
"""Twice the slack of the boosted quantile in the table that was there before."""


def tables(evaluations: Sequence[Evaluation], speed: Speed | None) -> Iterator[tuple[str, Table]]:
    for refitted in (True, False):
        chosen = [each for each in evaluations if each.refitted is refitted]
        where = "trained on the time before the cut" if refitted else "trained on the other sets only"
        yield f"Relative error at 1 / 15 steps, models {where}", _error_table(chosen)
        yield f"Misses at equal slack, models {where}", _peak_table(chosen)
    yield "Coverage of a promised 95 %, models trained on the other sets only", _coverage_table(evaluations)
    if speed:
        yield "Speed", _speed_table(speed)


def _error_table(evaluations: Sequence[Evaluation]) -> Table:
    models = list(evaluations[0].errors) if evaluations else []
    rows = []
    for each in evaluations:
        bars = ERROR_BARS[each.series_set]
        reached = all(found <= bar + ERROR_MARGIN for found, bar in zip(each.errors[SELECTED], bars, strict=True))
        cells = ["/".join(f"{error:.3f}" for error in each.errors[model]) for model in models]
        number = str(len(each.series[SELECTED]))
        bar = "/".join(f"{bar:.2f}" for bar in bars)
        rows.append((each.series_set, number, *cells, bar, _verdict(reached), f"{each.training_seconds:.0f}"))
    return Table(("set", "series", *models, "bar", "verdict", "training, CPU s"), rows)


def _peak_table(evaluations: Sequence[Evaluation]) -> Table:
    rows = [
        (
            each.series_set,
            name,
            f"{row.missed:.2%}",
            f"{row.ours_missed:.2%}",
            f"{row.slack:.1%}",
            "{:+.2%} to {:+.2%}".format(*row.higher_by),
            _verdict(row.not_worse()),
        )
        for each in evaluations
        for name, row in each.peaks.items()
    ]
    return Table(("set", "estimator", "it misses", "ours misses", "slack of both", "95 % interval", "verdict"), rows)


def _coverage_table(evaluations: Sequence[Evaluation]) -> Table:
    rows = []
    for each in evaluations:
        if each.coverage is None:
            continue
        found, bar = each.coverage, SLACK_BARS[each.series_set]
        reached = abs(found.mean - 0.95) <= 0.02 and found.within_three_points >= 0.8 and found.slack <= bar
        shares = (f"{found.mean:.1%}", f"{found.within_three_points:.0%}", f"{found.slack:.1%}", f"{bar:.1%}")
        rows.append((each.series_set, str(found.series), *shares, _verdict(reached)))
    return Table(("set", "series", "mean coverage", "series within 3 points", "slack", "most", "verdict"), rows)


def _speed_table(speed: Speed) -> Table:
    rows = [
        ("a pass over 20,000 pods, 2 axes, 3 horizons, CPU s", f"{speed.seconds:.1f}", "10", speed.seconds < 10),
        ("most memory, MiB", f"{speed.mebibytes:.0f}", "1024", speed.mebibytes < 1024),
        ("one training, CPU s", f"{speed.training_seconds:.0f}", "60", speed.training_seconds < 60),
    ]
    return Table(("what", "measured", "bar", "verdict"), [(*row[:3], _verdict(row[3])) for row in rows])


def _verdict(reached: bool) -> str:
    return "reached" if reached else "not reached"


def markdown(evaluations: Sequence[Evaluation], speed: Speed | None) -> str:
    lines = []
    for title, table in tables(evaluations, speed):
        lines += [f"\n{title}:\n", _line(table.headers), _line(["---"] * len(table.headers))]
        lines += [_line(row) for row in table.rows]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write_files(folder: Path, evaluations: Sequence[Evaluation], speed: Speed | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"evaluations": [asdict(each) for each in evaluations], "speed": asdict(speed) if speed else None}
    (folder / "forecasts.json").write_text(json.dumps(facts, indent=1))
    with (folder / "forecasts.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("set", "refitted", "model", "series", "1 step", "15 steps"))
        for each in evaluations:
            for model, series in each.series.items():
                writer.writerows((each.series_set, each.refitted, model, at, *row) for at, row in enumerate(series))
    (folder / "forecasts.html").write_text(_page(evaluations, speed))


def _page(evaluations: Sequence[Evaluation], speed: Speed | None) -> str:
    page = ReportPage("Forecasts on real series")
    page.text("Series of the reported half; choices were made on the other half. See docs/forecasting.md.")
    for title, table in tables(evaluations, speed):
        page.heading(title)
        page.table(table)
    figure = go.Figure()
    for each in evaluations:
        label = f"{each.series_set}, {'refitted' if each.refitted else 'other sets'}"
        figure.add_box(y=[row[-1] for row in each.series[SELECTED]], name=label)
    figure.update_layout(height=420, showlegend=False, yaxis_title="relative error of the selection, 15 steps")
    page.figure(figure)
    return page.html()
