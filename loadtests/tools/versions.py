"""Which version a program says it is, and whether that is good enough."""

from __future__ import annotations

import re
from pathlib import Path

from loadtests.tools.catalogue import Program
from loadtests.tools.commands import CommandFailed, run

_VERSION = re.compile(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)?)")
_SECONDS_TO_ANSWER = 20.0


def first_version(text: str) -> str | None:
    """The first thing in a program's words that looks like a version."""
    found = _VERSION.search(text)
    return found.group(1) if found else None


def is_suitable(version: str | None, suitable: tuple[str, str]) -> bool:
    lowest, above = suitable
    if not lowest:
        return True
    return version is not None and parts(lowest) <= parts(version) < parts(above)


def parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


async def ask_version(path: Path, program: Program) -> str | None:
    """None when it does not say one: a program that cannot answer will not be of use."""
    if not program.ask:
        return None
    try:
        return first_version(await run([str(path), *program.ask], deadline=_SECONDS_TO_ANSWER))
    except (CommandFailed, OSError):
        return None
