"""The report: a table, CSV and JSON of it, and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from loadtests.zero_loss.design import Way
from loadtests.zero_loss.results import Row, as_csv, as_json
from loadtests.zero_loss.run import Measured

_JSON = "zero-loss.json"
_ORDER = [way.value for way in Way]
_HEAD = (
    *("moved by", "app", "replicas", "moves"),
    *("refused", "reset", "no endpoint", "timeout", "lost/move", "longest gap ms", "landed"),
)


def write_report(measured: Sequence[Measured], rate: float, folder: Path) -> None:
    """Ways that were measured by an earlier run only are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    new = [each for one in measured for each in one.rows]
    kept = [each for each in _earlier(folder / _JSON) if each.way not in {row.way for row in new}]
    rows = sorted([*new, *kept], key=lambda each: _ORDER.index(each.way))
    problems = [text for one in measured for text in one.problems]
    (folder / "zero-loss.csv").write_text(as_csv(rows))
    (folder / _JSON).write_bytes(as_json(rows))
    notes = [f"{rate:g} requests per second to each app from each of four load tools", *problems]
    (folder / "zero-loss.txt").write_text("\n".join([text_table(rows), "", *notes, ""]))
    (folder / "table.md").write_text(markdown_table(rows))
    _plot(rows, folder / "zero-loss.svg")


def _earlier(path: Path) -> list[Row]:
    return msgspec.json.decode(path.read_bytes(), type=list[Row]) if path.exists() else []


def _cells(row: Row) -> tuple[str, ...]:
    landed = f"{row.as_planned} planned, {row.elsewhere} elsewhere, {row.back} back"
    per_move = f"{row.lost / max(1, row.moves):.2f}"
    way = row.way if row.way == row.strategies.rsplit(" ", 1)[0] else f"{row.way} ({row.strategies})"
    return (
        *(way, f"{row.app}: {row.ending}", str(row.replicas), str(row.moves)),
        *(str(row.refused), str(row.reset), str(row.no_endpoint), str(row.timeout), per_move),
        *(f"{row.longest_gap_ms:.0f}", landed),
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
    figures = {(row.way, row.app): (row.lost / max(1, row.moves), row.longest_gap_ms) for row in rows}
    plot_zero_loss(figures, path)
