"""How commands print: tables as kubectl prints them, JSON and YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import click
import msgspec
from tabulate import tabulate

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def show(text: str) -> None:
    """Text may come from anyone who writes to the cluster, as in the message of an Event. A terminal would obey its
    control characters; they are shown as in JSON."""
    click.echo(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = [["<none>" if cell is None or cell == "" else cell for cell in row] for row in rows]
    return tabulate(cells, headers=[header.upper() for header in headers], tablefmt="plain", disable_numparse=True)


def to_json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def to_yaml(value: object) -> str:
    return msgspec.yaml.encode(value).decode().rstrip()
