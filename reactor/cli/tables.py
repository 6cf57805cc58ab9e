"""Plain tables as kubectl prints them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tabulate import tabulate


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = [["<none>" if cell is None or cell == "" else cell for cell in row] for row in rows]
    return tabulate(cells, headers=[header.upper() for header in headers], tablefmt="plain", disable_numparse=True)


def ago(seconds: float) -> str:
    """An age the way kubectl shortens it: 42s, 7m, 3h, 2d."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "m")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
