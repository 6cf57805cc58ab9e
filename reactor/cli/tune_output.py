"""How `rematch tune` shows its answer: a table with a plot, JSON, and a page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from reactor.cli.output import table
from reactor.cli.tune_plot import mark, plot, svg
from reactor.clock import rfc3339
from reactor.replay.answer import Answer, Difference, Gate
from reactor.replay.tuning import Tuning

_HEADERS = (
    "",
    "settings",
    "moves/day",
    "unhappy min/day",
    "moves against in force",
    "unhappy min against in force",
    "",
)


def render(tuning: Tuning, width: int) -> str:
    parts = ["\n".join(_gate_lines(tuning.gate))]
    if tuning.answers:
        parts += [table(_HEADERS, [_row(number, each) for number, each in enumerate(tuning.answers)])]
        parts += [plot(tuning.answers, width), "\n".join(_first_differences(tuning))]
    parts += ["\n".join(f"note: {note}" for note in tuning.notes), f"recommended: {tuning.why}"]
    return "\n\n".join(part for part in parts if part)


def _gate_lines(gate: Gate) -> Iterator[str]:
    yield f"replay of the settings in force, last {gate.days:.1f} days, that the response was not fitted to:"
    for each in gate.figures:
        low, high = each.interval.low, each.interval.high
        verdict = "reproduced" if each.passed else "NOT reproduced"
        yield f"  {each.what}: {each.recorded:.0f} recorded, 80 % interval {low:.0f} to {high:.0f}: {verdict}"


def _row(number: int, each: Answer) -> tuple[object, ...]:
    said = [
        "front" if each.on_front else "",
        "" if each.supported else f"not supported: {each.unseen:.0%} of the time at loads never seen",
    ]
    differences = [_shown(each.more_moves), _shown(each.more_unhappy)] if number else ["-", "-"]
    name, remarks = each.candidate.name, ", ".join(filter(None, said)) or "-"
    return (mark(number), name, f"{each.moves:.1f}", f"{each.unhappy:.0f}", *differences, remarks)


def _shown(difference: Difference) -> str:
    return f"{difference.mean:+.0f} ({difference.interval.low:+.0f} to {difference.interval.high:+.0f})"


def _first_differences(tuning: Tuning) -> Iterator[str]:
    """Of the recommended settings, else of each."""
    shown = [tuning.recommended] if tuning.recommended is not None else tuning.answers[1:4]
    for each in shown:
        found = each.first_difference
        if found is None:
            yield f"{each.candidate.name}: no decision differs"
            continue
        yield f"{each.candidate.name}: the first decision that differs, at {rfc3339(found.at)}:"
        yield f"  in force: {found.in_force or 'nothing'}"
        yield f"  instead:  {found.candidate or 'nothing'}"


def document(tuning: Tuning) -> dict[str, Any]:
    """For programs."""
    return {
        "days": tuning.days,
        "gate": {
            "passed": tuning.gate.passed,
            "days": tuning.gate.days,
            "figures": [
                {"what": each.what, "recorded": each.recorded, "replayed": each.replayed, "low": each.interval.low,
                 "high": each.interval.high, "passed": each.passed}
                for each in tuning.gate.figures
            ],
        },
        "settings": [_document(each) for each in tuning.answers],
        "recommended": None if tuning.recommended is None else tuning.recommended.candidate.changes,
        "why": tuning.why,
        "notes": list(tuning.notes),
    }  # fmt: skip


def _document(each: Answer) -> dict[str, Any]:
    differs = each.first_difference
    return {
        "name": each.candidate.name,
        "changes": each.candidate.changes,
        "movesPerDay": each.moves,
        "unhappyMinutesPerDay": each.unhappy,
        "moves": _of_difference(each.more_moves),
        "unhappyMinutes": _of_difference(each.more_unhappy),
        "cost": _of_difference(each.cost),
        "unseen": each.unseen,
        "supported": each.supported,
        "paretoFront": each.on_front,
        "firstDifference": None
        if differs is None
        else {"at": rfc3339(differs.at), "inForce": differs.in_force, "candidate": differs.candidate},
    }


def _of_difference(difference: Difference) -> dict[str, float]:
    return {"mean": difference.mean, "low": difference.interval.low, "high": difference.interval.high}


def page(tuning: Tuning) -> str:
    """One HTML file that needs nothing else."""
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in _row(number, each)) + "</tr>"
        for number, each in enumerate(tuning.answers)
    )
    heads = "".join(f"<th>{escape(head)}</th>" for head in _HEADERS)
    lines = "".join(f"<p>{escape(line)}</p>" for line in (*_gate_lines(tuning.gate), *tuning.notes))
    style = "body{font-family:sans-serif;max-width:60em;margin:2em auto}td,th{padding:.2em .6em;text-align:left}"
    drawn = svg(tuning.answers) if tuning.answers else ""
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>rematch tune</title><style>{style}</style>"
        f"<h1>What other settings would have done</h1><p><b>{escape(tuning.why)}</b></p>{drawn}"
        f"<table><tr>{heads}</tr>{rows}</table>{lines}</html>"
    )
