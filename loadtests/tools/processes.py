"""Child processes of the lab: bounded in time, and killed by the kernel when this process ends."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from reactor.errors import RematchError

ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""Put before a command: the kernel kills it when the thread that started it ends, for whatever reason."""
Progress = Callable[[str], None]
"""Where long work reports what it does, line by line."""
_TAIL = 12


class CommandFailed(RematchError):
    pass


async def run(
    command: Sequence[str], *, deadline: float, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """What it printed (both streams, as people see it); `CommandFailed` with the end of that when it fails."""
    process = await asyncio.create_subprocess_exec(
        *ends_with_us(),
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


def without_proxies() -> dict[str, str]:
    """The environment of a process that talks within the machine only."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def ends_with_us() -> tuple[str, ...]:
    """Nothing where setpriv is not installed: some commands run before the lab's programs are there."""
    return ENDS_WITH_US if shutil.which(ENDS_WITH_US[0]) else ()
