"""Plain tables as kubectl prints them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tabulate import tabulate


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = [["<none>" if cell is None or cell == "" else cell for cell in row] for row in rows]
    return tabulate(cells, headers=[header.upper() for header in headers], tablefmt="plain", disable_numparse=True)
