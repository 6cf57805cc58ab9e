"""`rematch lab tools`: gets the programs, or says where they are."""

from __future__ import annotations

import asyncio
import json

import click

from loadtests.tools.catalogue import Group, names
from loadtests.tools.ensuring import Found, Missing, ensure, survey
from reactor.cli.output import table


def main(group: str, *, only_list: bool, output: str) -> None:
    wanted = names() if group == "all" else names(Group(group))
    try:
        states = asyncio.run(_states(wanted, only_list=only_list))
    except KeyboardInterrupt as stop:
        click.echo("interrupted; the next run goes on from what is compiled already", err=True)
        raise click.exceptions.Abort from stop
    rows = [_row(state) for state in states]
    if output == "json":
        click.echo(json.dumps([dict(zip(_COLUMNS, row, strict=True)) for row in rows], indent=2))
    else:
        click.echo(table(_COLUMNS, rows))


async def _states(wanted: tuple[str, ...], *, only_list: bool) -> list[Found | Missing]:
    if not only_list:
        await ensure(wanted)
    return await survey(wanted)


_COLUMNS = ("program", "version", "state", "path")


def _row(state: Found | Missing) -> tuple[str, str, str, str]:
    name = state.program.name
    match state:
        case Found(_, path, version, cached):
            return name, version, "in the cache" if cached else "on the PATH", str(path)
        case Missing(program, unsuitable):
            told = f"missing ({unsuitable} on the PATH will not do)" if unsuitable else "missing"
            return name, program.version, told, ""
