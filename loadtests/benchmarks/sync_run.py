"""Initial sync of `rematch run` against a server with many pods: wall and CPU time until it is ready, and memory.

    python -m loadtests.benchmarks.sync_run [--pods 15000] [--nodes 500] [--rematch PROGRAM]

Unlike `sync_load` this is the whole program, start-up included, and any version of it can be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from loadtests.benchmarks.process import process_use
from loadtests.benchmarks.sync_client import sync_server, write_kubeconfig
from loadtests.benchmarks.sync_server import Shape
from loadtests.demo.controller import ControllerSpec, running_controller
from loadtests.tools.ports import free_port

START_DEADLINE = 120.0
SETTINGS = "mode: observe\n"


@dataclass(frozen=True, slots=True)
class SyncRunResult:
    pods: int
    wall_seconds: float
    cpu_seconds: float
    peak_mib: float


async def measure(shape: Shape, program: str) -> SyncRunResult:
    with tempfile.TemporaryDirectory(prefix="rematch-bench-") as made:
        folder = Path(made)
        settings = folder / "settings.yaml"
        settings.write_text(SETTINGS)
        async with sync_server(shape) as port:
            kubeconfig = write_kubeconfig(folder / "kubeconfig", port)
            spec = ControllerSpec(
                kubeconfig, settings, folder / "rematch.db", folder / "controller.log", free_port(), (program,)
            )
            began = time.monotonic()
            async with running_controller(spec, START_DEADLINE) as controller:
                wall, use = time.monotonic() - began, process_use(controller.pid)
    return SyncRunResult(shape.pods, wall, use.cpu_seconds, use.peak_mib)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=15_000)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--rematch", default="rematch", help="the program to measure")
    wanted = parser.parse_args()
    print(json.dumps(asdict(asyncio.run(measure(Shape(wanted.pods, wanted.nodes), wanted.rematch)))))


if __name__ == "__main__":
    main()
