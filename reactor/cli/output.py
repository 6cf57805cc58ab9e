"""How commands print: tables as kubectl prints them, JSON and YAML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from tabulate import tabulate


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = [["<none>" if cell is None or cell == "" else cell for cell in row] for row in rows]
    return tabulate(cells, headers=[header.upper() for header in headers], tablefmt="plain", disable_numparse=True)


def to_json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def to_yaml(value: object) -> str:
    return msgspec.yaml.encode(value).decode().rstrip()
