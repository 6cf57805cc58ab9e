"""Runs one command to its end, with a deadline; nothing of it is left behind, not even when we are killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadtests.tools.child_processes import ENDS_WITH_US
from reactor.errors import RematchError

_TAIL = 12


class CommandFailed(RematchError):
    pass


async def run(
    command: Sequence[str], *, deadline: float, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """What it printed (both streams, as people see it); `CommandFailed` with the end of that when it fails."""
    process = await asyncio.create_subprocess_exec(
        *_bound_to_us(),
        *command,
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(deadline):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise CommandFailed(f"{command[0]} did not end within {deadline:g} s") from error
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    text = output.decode(errors="replace")
    if process.returncode:
        tail = "\n".join(text.splitlines()[-_TAIL:])
        raise CommandFailed(f"{' '.join(command)} ended with {process.returncode}:\n{tail}")
    return text


def _bound_to_us() -> tuple[str, ...]:
    """Commands also run before the lab's programs are there: then without."""
    return ENDS_WITH_US if shutil.which(ENDS_WITH_US[0]) else ()
