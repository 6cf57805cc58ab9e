"""The server of a test ends with the test, also when that is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadtests.postgresql import find_server
from loadtests.tools.catalogue import ToolMissing

CHILD = """
import os, signal
from loadtests.postgresql import postgresql_server
with postgresql_server() as server:
    print(server._process.pid, server._data.parent, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_server_ends_with_a_process_that_is_killed() -> None:
    try:
        find_server()
    except ToolMissing as missing:
        pytest.skip(str(missing))
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=50, check=False)
    pid, folder = done.stdout.split()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    subprocess.run(["rm", "-r", folder], check=True, timeout=20)
