"""`make bench`: every figure of docs/benchmarks.md, one after the other, each in a process of its own."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median

HELP_BAR_MS = 300.0
HELP_RUNS = 11


@dataclass(frozen=True, slots=True)
class Bench:
    name: str
    module: str
    about: str


BENCHES = (
    Bench("sync", "loadtests.benchmarks.sync_load", "initial sync of 15k, 50k and 150k pods (about a minute)"),
    Bench("changes", "loadtests.benchmarks.sync_changes", "5,000 changes per second for 20 s"),
    Bench("planners", "loadtests.benchmarks.planners_speed", "every planner's bar, up to 150,000 pods (3 minutes)"),
    Bench("peer", "loadtests.benchmarks.against_pypi_matching", "the PyPI package matching: same answers, how long"),
    Bench("reaction", "loadtests.benchmarks.reaction", "event to eviction with 1,000 pods, and idling (2 minutes)"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m loadtests.benchmarks", description=__doc__)
    parser.add_argument("only", nargs="*", help=f"any of: help {' '.join(bench.name for bench in BENCHES)}")
    only = parser.parse_args().only
    known = {"help", *(bench.name for bench in BENCHES)}
    if unknown := set(only) - known:
        parser.error(f"unknown bench {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")
    failed = []
    if not only or "help" in only:
        print("== help: how long `rematch --help` takes", flush=True)
        _time_help()
    for bench in BENCHES:
        if only and bench.name not in only:
            continue
        print(f"== {bench.name}: {bench.about}", flush=True)
        if subprocess.run([sys.executable, "-m", bench.module], check=False).returncode:
            failed.append(bench.name)
    if failed:
        print(f"above their bars: {', '.join(failed)}")
    return 1 if failed else 0


def _time_help() -> None:
    command = [sys.executable, "-c", "from reactor.cli.main import main; main()", "--help"]
    times = []
    for _ in range(HELP_RUNS):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - began) * 1000)
    print(f"median {median(times):.0f} ms, max {max(times):.0f} ms of {HELP_RUNS} (bar {HELP_BAR_MS:g} ms)")


if __name__ == "__main__":
    sys.exit(main())
