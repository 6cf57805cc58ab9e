"""Finds the lab's programs, and builds or installs the missing ones (`rematch lab tools`)."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from loadtests.tools.building import Builder, find_go, install
from loadtests.tools.cache import Cache
from loadtests.tools.catalogue import (
    DebianPackage,
    Group,
    ModuleFiles,
    Program,
    ToolMissing,
    ask_version,
    is_suitable,
    names,
    program,
)
from loadtests.tools.processes import Progress
from reactor.cli.output import table

_COLUMNS = ("program", "version", "state", "path")


@dataclass(frozen=True, slots=True)
class Found:
    program: Program
    path: Path
    version: str
    cached: bool


@dataclass(frozen=True, slots=True)
class Missing:
    program: Program
    unsuitable: str = ""
    """The version of the one on the PATH that will not do."""


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def survey(names: Iterable[str], cache: Cache | None = None) -> list[Found | Missing]:
    """What is here now; nothing is made."""
    kept = cache or Cache.usual()
    return [await _look(program(name), kept) for name in names]


async def ensure(
    names: Iterable[str], *, cache: Cache | None = None, progress: Progress = to_stderr
) -> Mapping[str, Path]:
    """The path of each of these programs; what is missing is built or installed first."""
    kept = cache or Cache.usual()
    states = await survey(dict.fromkeys(names), kept)
    missing = [state.program for state in states if isinstance(state, Missing)]
    await _install([each for each in missing if isinstance(each.source, DebianPackage)], progress)
    await _build([each for each in missing if not isinstance(each.source, DebianPackage)], kept, progress)
    if missing:
        states = await survey([state.program.name for state in states], kept)
    return {state.program.name: _path(state) for state in states}


async def _look(wanted: Program, cache: Cache) -> Found | Missing:
    unsuitable = ""
    if not isinstance(wanted.source, ModuleFiles) and (found := shutil.which(wanted.name)):
        version = await ask_version(Path(found), wanted)
        if is_suitable(version, wanted.suitable):
            return Found(wanted, Path(found), version or "", cached=False)
        unsuitable = version or "of unknown version"
    kept = None if isinstance(wanted.source, DebianPackage) else cache.find(wanted)
    return Found(wanted, kept, wanted.version, cached=True) if kept else Missing(wanted, unsuitable)


async def _install(programs: Sequence[Program], progress: Progress) -> None:
    packages = [each.source.name for each in programs if isinstance(each.source, DebianPackage)]
    if packages:
        await install(list(dict.fromkeys(packages)), progress)


async def _build(programs: Sequence[Program], cache: Cache, progress: Progress) -> None:
    if not programs:
        return
    builder = Builder(cache, await find_go(cache, progress), progress)
    for number, each in enumerate(programs, start=1):
        if len(programs) > 1:
            progress(f"{number} of {len(programs)}")
        await builder.make(each)


def _path(state: Found | Missing) -> Path:
    if isinstance(state, Found):
        return state.path
    wanted = f"{state.program.name} {state.program.version}"
    raise ToolMissing(
        f"{wanted} is needed and was not found after it was installed (here: {state.unsuitable or 'none'})"
    )


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


def _row(state: Found | Missing) -> tuple[str, str, str, str]:
    name = state.program.name
    match state:
        case Found(_, path, version, cached):
            return name, version, "in the cache" if cached else "on the PATH", str(path)
        case Missing(program, unsuitable):
            state_text = f"missing ({unsuitable} on the PATH will not do)" if unsuitable else "missing"
            return name, program.version, state_text, ""
