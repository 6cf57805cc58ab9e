"""The page: a summary, where everything was shown, and a table for each source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loadtests.evidence import bnip, genetic, kse, latency, stable
from loadtests.evidence.claims import Row, Source, Verdict, Where
from loadtests.evidence.result_files import ResultFiles

SOURCES: tuple[Source, ...] = (stable.SOURCE, kse.SOURCE, bnip.SOURCE, latency.SOURCE, genetic.SOURCE)
_HEAD = """\
# What was shown, and where

Every result figure and table of the five sources, and what Rematch shows beside it. `rematch lab evidence` makes this page from the result files in `docs/`; do not edit it.

- **reproduced**: the paper's result is found again, by the rule in `loadtests/evidence`; **better**: ours goes beyond it; **differs**: it is not found again, and its row says why;
  **shown, not compared**: there are figures of ours, and none of the paper to hold them against; **not shown**: nothing was measured; **ruled out**: none of the controller's business.
- Beside the sources' own figures: [tournament](tournament.md), [requests lost to moves](zero-loss.md), [chaos](chaos.md), [speed](benchmarks.md).
- The papers themselves were not at hand when this was written, only a digest of them. KSE's tables and figures are answered by their content, not one by one.

"""  # noqa: E501
_MISSING = "-"


def page(files: ResultFiles) -> str:
    found = [(source, [claim.row(files) for claim in source.claims]) for source in SOURCES]
    parts = [_HEAD, "## In short\n\n", _counts(found), "\n", _places(found)]
    for source, rows in found:
        parts.append(f"\n## {source.name}\n\n{source.title[0].upper()}{source.title[1:]}; [more]({source.page}).\n\n")
        parts.append(_table(rows))
    return "".join(parts)


def _counts(found: Sequence[tuple[Source, list[Row]]]) -> str:
    head = ("source", "rows", *Verdict)
    rows = [(source.name, *_numbers(rows)) for source, rows in found]
    total = ("all", *_numbers([row for _, rows in found for row in rows]))
    return _markdown(head, [*rows, total])


def _numbers(rows: Sequence[Row]) -> tuple[str, ...]:
    counts = (sum(row.finding.verdict is verdict for row in rows) for verdict in Verdict)
    return str(len(rows)), *(str(count or _MISSING) for count in counts)


def _places(found: Sequence[tuple[Source, list[Row]]]) -> str:
    """By place and source the names of the rows."""
    rows = []
    for where in Where:
        names = [[row.name for row in rows if _counts_at(row, where)] for _, rows in found]
        rows.append((f"**{where}** ({sum(map(len, names))})", *map(_short, names)))
    return _markdown(("shown on (rows)", *(source.name for source, _ in found)), rows)


def _counts_at(row: Row, where: Where) -> bool:
    return row.finding.where is where and row.finding.verdict is not Verdict.RULED_OUT


def _short(names: Iterable[str]) -> str:
    """What several rows are about, once."""
    return "; ".join(dict.fromkeys(name.partition(": ")[0] for name in names)) or _MISSING


def _table(rows: Sequence[Row]) -> str:
    head = ("figure or table", "the paper", "ours", "verdict", "shown on", "why, and what to know", "made by")
    return _markdown(head, [_cells(row) for row in rows])


def _cells(row: Row) -> tuple[str, ...]:
    found = row.finding
    made = f"`{row.command}` ([file]({row.file}))" if row.file else _MISSING
    where = _MISSING if found.where is Where.NOWHERE else found.where.value
    return (row.name, row.paper, found.ours or _MISSING, f"**{found.verdict}**", where, found.why or _MISSING, made)


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)
