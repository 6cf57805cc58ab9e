"""The report: a table, CSV and JSON of it, a plot, and every move and failed request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, fields
from pathlib import Path

import msgspec

from loadtests.zero_loss.design import Way
from loadtests.zero_loss.moving import Landed
from loadtests.zero_loss.results import Failed, Row, added, as_csv, as_json, csv_text, strategies_text
from loadtests.zero_loss.run import Measured
from reactor.errors import InputError

_JSON, _MOVES, _FAILED = "zero-loss.json", "moves.csv", "failed.csv"
_ORDER = [way.value for way in Way]
_HEAD = (
    *("moved by", "app", "replicas", "moves", "requests"),
    *("refused", "reset", "no endpoint", "timeout", "lost/move", "longest gap ms", "s/move", "landed"),
)


def rows_in(folder: Path) -> list[Row]:
    """Of the last report; empty where there is none."""
    path = folder / _JSON
    if not path.exists():
        return []
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Row])
    except msgspec.DecodeError as error:
        raise InputError(f"{path} is damaged, or of another version: {error}. Remove it to begin anew") from error


def together(before: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Rows of the same app and way added up."""
    totals: dict[tuple[str, str], Row] = {}
    for each in (*before, *new):
        key = (each.way, each.app)
        totals[key] = added(totals[key], each) if key in totals else each
    return list(totals.values())


def write_report(measured: Measured, rate: float, folder: Path) -> None:
    """Ways that `measured` does not have stay as an earlier run has left them."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = [each for each in rows_in(folder) if each.way not in {row.way for row in measured.rows}]
    rows = sorted([*measured.rows, *kept], key=lambda each: _ORDER.index(each.way))
    (folder / "zero-loss.csv").write_text(as_csv(rows))
    (folder / _JSON).write_bytes(as_json(rows))
    notes = [f"{rate:g} requests per second to each app from each of four load tools", *measured.problems]
    (folder / "zero-loss.txt").write_text("\n".join([text_table(rows), "", *notes, ""]))
    (folder / "table.md").write_text(markdown_table(rows))
    _plot(rows, folder / "zero-loss.svg")


def forget_details(ways: Collection[Way], folder: Path) -> None:
    """The moves and failed requests of these ways, which are measured anew."""
    for path in (folder / _MOVES, folder / _FAILED):
        lines = path.read_text().splitlines(keepends=True) if path.exists() else ()
        kept = [line for line in lines if line.partition(",")[0] not in ways]
        if kept:
            path.write_text("".join(kept))


def add_moves(leg: Measured, folder: Path) -> None:
    """Every move of one leg, with its times."""
    _append(folder / _MOVES, ("way", *_names(Landed)), [(way, *_rounded(each)) for way, each in leg.landed])


def add_failed(leg: Measured, folder: Path) -> None:
    """Every failed request of one leg."""
    _append(folder / _FAILED, _names(Failed), [_rounded(each) for each in leg.failed])


def _rounded(one: Landed | Failed) -> tuple[object, ...]:
    return tuple(round(each, 2) if isinstance(each, float) else each for each in astuple(one))


def _append(path: Path, names: Sequence[str], values: Sequence[Sequence[object]]) -> None:
    lines = csv_text(() if path.exists() else names, values)
    with path.open("a") as file:
        file.write(lines)


def _names(kind: type[Landed] | type[Failed]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _cells(row: Row) -> tuple[str, ...]:
    landed = f"{row.as_planned} planned, {row.elsewhere} elsewhere, {row.back} back"
    moves = max(1, row.moves)
    way = row.way if len(row.strategies) <= 1 and row.way != Way.CHOSEN else f"{row.way} ({strategies_text(row)})"
    return (
        *(way, f"{row.app}: {row.ending}", str(row.replicas), str(row.moves), str(row.requests)),
        *(str(row.refused), str(row.reset), str(row.no_endpoint), str(row.timeout), f"{row.lost / moves:.2f}"),
        *(f"{row.longest_gap_ms:.0f}", f"{row.move_seconds / moves:.1f}", landed),
    )


def text_table(rows: Sequence[Row]) -> str:
    lines = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def markdown_table(rows: Sequence[Row]) -> str:
    lines = [_HEAD, tuple("---" for _ in _HEAD), *(_cells(row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _plot(rows: Sequence[Row], path: Path) -> None:
    """Where matplotlib is: it comes with a clone, not with the lab."""
    try:
        from loadtests.benchmarks.plots import plot_zero_loss
    except ImportError:
        return
    figures = {(row.way, row.app): (row.failed / max(1, row.moves), row.longest_gap_ms) for row in rows}
    plot_zero_loss(figures, path)
