"""The settings as points of moves against unhappy minutes, in the terminal and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from reactor.replay.answer import Answer

_HEIGHT = 14
_LABEL = 9
_MARKS = "0123456789abcdefghijklmnopqrstuvwxyz"
_WIDE, _HIGH, _EDGE = 760, 420, 60


def mark(number: int) -> str:
    return _MARKS[number] if number < len(_MARKS) else "+"


def plot(answers: Sequence[Answer], width: int) -> str:
    """Marks are those of the table."""
    columns = max(20, min(width, 100) - _LABEL - 1)
    most_moves, most_unhappy = _most(answers)
    grid = [[" "] * columns for _ in range(_HEIGHT)]
    for number, each in reversed(list(enumerate(answers))):
        column = round(each.moves / most_moves * (columns - 1))
        row = round((1 - each.unhappy / most_unhappy) * (_HEIGHT - 1))
        grid[row][column] = mark(number)
    labels = {0: f"{most_unhappy:.3g}", _HEIGHT - 1: "0"}
    lines = [f"{labels.get(row, ''):>{_LABEL}} |{''.join(cells).rstrip()}" for row, cells in enumerate(grid)]
    axis = f"{'':>{_LABEL}} +{'-' * columns}"
    scale = f"{'':>{_LABEL}}  0{f'{most_moves:.3g} moves per day':>{columns - 1}}"
    return "\n".join(["unhappy pod-minutes per day", *lines, axis, scale])


def svg(answers: Sequence[Answer]) -> str:
    """With the front as a line."""
    most_moves, most_unhappy = _most(answers)

    def at(each: Answer) -> tuple[float, float]:
        x = _EDGE + each.moves / most_moves * (_WIDE - 2 * _EDGE)
        return x, _HIGH - _EDGE - each.unhappy / most_unhappy * (_HIGH - 2 * _EDGE)

    front = sorted(at(each) for each in answers if each.on_front)
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in front)
    points = []
    for number, each in enumerate(answers):
        x, y = at(each)
        colour = "#d62728" if number == 0 else "#1f77b4" if each.supported else "#aaaaaa"
        points.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"><title>{escape(each.candidate.name)}:'
            f" {each.moves:.1f} moves, {each.unhappy:.0f} unhappy pod-minutes per day</title></circle>"
            f'<text x="{x + 7:.1f}" y="{y - 6:.1f}">{mark(number)}</text>'
        )
    bottom, right = _HIGH - _EDGE, _WIDE - _EDGE
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}" font-family="sans-serif"'
            ' font-size="12">',
            f'<path d="M{_EDGE},{_EDGE} V{bottom} H{right}" fill="none" stroke="#444"/>',
            f'<text x="{_EDGE - 8}" y="{_EDGE}" text-anchor="end">{most_unhappy:.3g}</text>',
            f'<text x="{_EDGE}" y="{_EDGE - 20}">unhappy pod-minutes per day</text>',
            f'<text x="{right}" y="{bottom + 20}" text-anchor="end">{most_moves:.3g} moves per day</text>',
            f'<polyline points="{line}" fill="none" stroke="#1f77b4" stroke-dasharray="4"/>',
            *points,
            "</svg>",
        ]
    )


def _most(answers: Sequence[Answer]) -> tuple[float, float]:
    return max(each.moves for each in answers) or 1.0, max(each.unhappy for each in answers) or 1.0
