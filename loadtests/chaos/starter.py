"""Starts one controller after the other in a process that has imported everything: a start takes milliseconds.

Importing takes seconds of CPU on a busy machine, and a run kills controllers a hundred times. Each line on standard
input is the JSON list of a command's arguments; the answers are `started PID` and, when it has ended, `ended PID`.
The controller's output goes to standard error. On SIGUSR2 it writes the number of its asyncio tasks to the file that
this process was given.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def main() -> None:
    from reactor.cli import main as cli
    from reactor.cli import run as _imported

    assert _imported
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _become(cli.main, json.loads(line))
        print("started", pid, flush=True)
        os.waitpid(pid, 0)
        print("ended", pid, flush=True)


def _become(command: object, arguments: list[str]) -> None:
    """The child: it dies with its parent, and what it prints is the controller's log."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    _count_tasks(Path(sys.argv[1]))
    sys.argv = ["rematch", *arguments]
    assert callable(command)
    try:
        command()
    finally:
        sys.stderr.flush()
        os._exit(0)


def _count_tasks(file: Path) -> None:
    """The handler runs in the thread of the loop, so the loop's tasks are known to it."""
    signal.signal(signal.SIGUSR2, lambda *_: file.write_text(str(len(asyncio.all_tasks()))) and None)


if __name__ == "__main__":
    main()
