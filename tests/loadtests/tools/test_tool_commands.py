"""A command that was started ends, whatever becomes of who started it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from loadtests.tools.processes import CommandFailed, run
from tests.support.clock import eventually

PROGRAM = """
import asyncio
from loadtests.tools.processes import run
asyncio.run(run(["sh", "-c", "echo $$ > {pid}; exec sleep 60"], deadline=60.0))
"""


async def test_a_command_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM.format(pid=pid))
    await eventually(lambda: pid.exists() and pid.read_text().endswith("\n"))
    child = pid.read_text().strip()
    assert not _ended(child)
    parent.kill()
    await parent.wait()
    await eventually(lambda: _ended(child))


async def test_a_failure_names_the_command_as_it_was_given() -> None:
    with pytest.raises(CommandFailed, match=r"(?s)^sh -c .* ended with 3:\nno space left$"):
        await run(["sh", "-c", "echo no space left; exit 3"], deadline=10.0)


async def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises((CommandFailed, OSError)):
        await run(["/no/such/program"], deadline=10.0)


def _ended(pid: str) -> bool:
    """Also when whoever inherited it has not noticed yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
