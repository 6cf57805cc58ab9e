"""What both sync benchmarks need: a server in another process, a connection to it, and our own costs."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from loadtests.benchmarks.sync_server import Shape
from reactor.clock import SystemClock
from reactor.cluster.connection import KubernetesConnection, open_connection
from reactor.cluster.decoding.decoder import MalformedObject
from reactor.cluster.kinds import Kind
from reactor.cluster.reads import ClusterReader
from reactor.errors import ClusterError
from reactor.settings.model import Settings
from reactor.state.live_state import State, StateCallbacks
from reactor.work_queue import WorkQueue

MIB = 1024 * 1024

_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: bench
clusters: [{name: bench, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: bench, user: {}}]
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
"""


@asynccontextmanager
async def sync_server(shape: Shape) -> AsyncIterator[int]:
    """Its port. The server ends when its standard input closes, and is killed if it does not."""
    arguments = ["--pods", shape.pods, "--nodes", shape.nodes, "--rate", shape.rate, "--seconds", shape.seconds]
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "loadtests.benchmarks.sync_server",
        *map(str, arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        yield int(await asyncio.wait_for(server.stdout.readline(), 30))
    finally:
        await _end(server)


@asynccontextmanager
async def served(shape: Shape) -> AsyncIterator[KubernetesConnection]:
    async with sync_server(shape) as port:
        connection = await _connect(port)
        try:
            yield connection
        finally:
            await connection.close()


def write_kubeconfig(path: Path, port: int) -> Path:
    path.write_text(_KUBECONFIG % port)
    return path


def bare_state(reader: ClusterReader) -> State:
    """The controller's whole state (mirror, probe probes, usage book), without a loop."""
    clock = SystemClock()
    callbacks = StateCallbacks(moves_under_way=lambda: False, config_map_changed=lambda _config_map: None)
    return State(reader.kinds, clock, WorkQueue(clock), Settings, callbacks)


async def _connect(port: int) -> KubernetesConnection:
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = await asyncio.to_thread(write_kubeconfig, Path(folder, "kubeconfig"), port)
        return await open_connection(str(kubeconfig))


async def _end(server: asyncio.subprocess.Process) -> None:
    assert server.stdin is not None
    server.stdin.close()
    try:
        await asyncio.wait_for(server.wait(), 3)
    except TimeoutError:
        server.kill()
        await server.wait()


class FailOnTrouble:
    """A benchmark whose server or objects are wrong measures nothing."""

    def malformed(self, malformed: MalformedObject) -> None:
        raise AssertionError(str(malformed))

    def trouble(self, kind: Kind, error: ClusterError, delay: float) -> None:
        raise AssertionError(f"{kind}: {error} (next try in {delay:.1f} s)")


def resident(field: str) -> float:
    """MiB: `VmRSS` now, `VmHWM` at its highest."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise OSError(f"no {field} in /proc/{os.getpid()}/status")


def waited_for_cpu() -> float:
    """Seconds that the main thread was ready to run but had no core."""
    return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
