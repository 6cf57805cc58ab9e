"""A process that is told to stop ends in time, whatever hangs in it."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from reactor.cli.stopping import EXIT_HUNG

HANGS = {
    "a thread": "await asyncio.to_thread(time.sleep, 600)",
    "a clean-up": """
    try:
        await asyncio.sleep(600)
    finally:
        await asyncio.shield(asyncio.sleep(600))""",
    "a task that ignores being cancelled": """
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass""",
}
PROGRAM = """
import asyncio, time
from reactor.cli.stopping import until_stopped

async def work():
    print("ready", flush=True)
    {hang}

asyncio.run(until_stopped(work(), grace=1.0))
"""


@pytest.mark.parametrize("hang", HANGS)
def test_a_process_ends_although_something_hangs(hang: str) -> None:
    program = PROGRAM.format(hang=HANGS[hang].strip("\n").removeprefix("    "))
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=15)
    assert process.returncode == EXIT_HUNG
    assert time.monotonic() - began < 8
    assert "did not stop within 1 s" in error


async def test_the_controller_ends_while_the_api_server_does_not_answer(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        config = {
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
        options = ["--kubeconfig", str(tmp_path / "kubeconfig"), "--store", str(tmp_path / "s.db"), "--port", "0"]
        start = [sys.executable, "-c", "from reactor.cli.main import main; main()", "run", *options]
        process = await asyncio.create_subprocess_exec(*start, stderr=asyncio.subprocess.PIPE)
        assert process.stderr is not None
        async for line in process.stderr:
            if b"serving" in line:
                break
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 25)
    assert process.returncode == 0
    assert time.monotonic() - began < 15
