"""Where each program is, and the making of those that are nowhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtests.tools.building import Builder
from loadtests.tools.cache import Cache
from loadtests.tools.catalogue import DebianPackage, ModuleFiles, Program, program
from loadtests.tools.errors import ToolMissing
from loadtests.tools.golang import find_go
from loadtests.tools.packages import install
from loadtests.tools.saying import Say
from loadtests.tools.versions import ask_version, is_suitable


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


async def ensure(names: Iterable[str], *, cache: Cache | None = None, say: Say = to_stderr) -> Mapping[str, Path]:
    """The path of each of these programs; what is missing is built or installed first."""
    kept = cache or Cache.usual()
    states = await survey(dict.fromkeys(names), kept)
    missing = [state.program for state in states if isinstance(state, Missing)]
    await _install([each for each in missing if isinstance(each.source, DebianPackage)], say)
    await _build([each for each in missing if not isinstance(each.source, DebianPackage)], kept, say)
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


async def _install(programs: Sequence[Program], say: Say) -> None:
    packages = [each.source.name for each in programs if isinstance(each.source, DebianPackage)]
    if packages:
        await install(list(dict.fromkeys(packages)), say)


async def _build(programs: Sequence[Program], cache: Cache, say: Say) -> None:
    if not programs:
        return
    builder = Builder(cache, await find_go(cache, say), say)
    for number, each in enumerate(programs, start=1):
        if len(programs) > 1:
            say(f"{number} of {len(programs)}")
        await builder.make(each)


def _path(state: Found | Missing) -> Path:
    if isinstance(state, Found):
        return state.path
    wanted = f"{state.program.name} {state.program.version}"
    raise ToolMissing(
        f"{wanted} is needed and was not found after it was installed (here: {state.unsuitable or 'none'})"
    )
