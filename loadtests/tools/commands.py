"""Runs one command to its end, with a deadline; on cancellation nothing of it is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from reactor.errors import RematchError

_TAIL = 12


class CommandFailed(RematchError):
    pass


async def run(
    command: Sequence[str], *, deadline: float, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """What it printed (both streams, as people see it); `CommandFailed` with the end of that when it fails."""
    process = await asyncio.create_subprocess_exec(
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
