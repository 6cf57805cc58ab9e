"""`make bench` and `make bench-cluster`: the figures of docs/benchmarks.md, each bench in a process of its own.

    python -m loadtests.benchmarks [NAME ...]
    python -m loadtests.benchmarks --cluster [--results docs/benchmarks] [NAME ...]

The benches of --cluster need a real control plane. A figure of a busy machine says little: the load average is shown.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HELP_BAR_MS = 300.0
HELP_RUNS = 11
DEADLINE = 7200.0
"""Several times what the longest bench takes on two cores."""


@dataclass(frozen=True, slots=True)
class Bench:
    name: str
    module: str
    about: str


BENCHES = (
    Bench("sync", "sync_load", "initial sync of 15k, 50k and 150k pods (about a minute)"),
    Bench("changes", "sync_changes", "5,000 changes per second for 20 s"),
    Bench("planners", "planners_speed", "every planner's bar, up to 150,000 pods (3 minutes)"),
    Bench("peer", "against_pypi_matching", "the PyPI package matching: same answers, how long"),
    Bench("stored-problem", "stored_problem", "size and time of a stored problem and plan, up to 10,000 pods"),
    Bench("history", "history", "the usage history: recording, bytes on disk, reading (3 minutes)"),
    Bench("extender", "extender", "kube-scheduler's extender: 100 pods per second on 5,000 nodes (half a minute)"),
    Bench("reaction", "reaction", "event to eviction with 1,000 pods, and idling (2 minutes)"),
    Bench("dashboard", "dashboard", "requests, charts and the event loop with up to 20,000 pods (4 minutes)"),
)
CLUSTER_BENCHES = (
    Bench(
        "side-by-side",
        "cluster_side_by_side",
        "rematch and descheduler on 5,000 pods crowded on 100 of 200 nodes (about 15 minutes)",
    ),
    Bench(
        "scale",
        "cluster_scale",
        "event to eviction beside 20,000 pods on 1,000 nodes, both scopes of the planner (about 8 minutes)",
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m loadtests.benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = [["help", *(bench.name for bench in BENCHES)], [bench.name for bench in CLUSTER_BENCHES]]
    parser.add_argument("only", nargs="*", help=f"any of: {' '.join(known[0])}; with --cluster: {' '.join(known[1])}")
    parser.add_argument("--cluster", action="store_true", help="the benches on a real control plane")
    parser.add_argument(
        "--results", type=Path, default=Path("docs/benchmarks"), help="folder for --cluster's JSON files"
    )
    wanted = parser.parse_args()
    if unknown := set(wanted.only) - set(known[wanted.cluster]):
        parser.error(f"unknown bench {', '.join(sorted(unknown))}; known: {', '.join(known[wanted.cluster])}")
    chosen = CLUSTER_BENCHES if wanted.cluster else BENCHES
    if not wanted.cluster and (not wanted.only or "help" in wanted.only):
        print("== help: how long `rematch --help` takes", flush=True)
        _time_help()
    missed = []
    for bench in chosen:
        if not wanted.only or bench.name in wanted.only:
            options = _into(wanted.results, bench) if wanted.cluster else []
            if not _run(bench, options):
                missed.append(bench.name)
    if missed:
        print(f"missed their bars: {', '.join(missed)}")
    return 1 if missed else 0


def _into(results: Path, bench: Bench) -> list[str]:
    results.mkdir(parents=True, exist_ok=True)
    return ["--into", str(results / f"cluster-{bench.name}.json")]


def _run(bench: Bench, options: Sequence[str]) -> bool:
    """Whether it reached its bars."""
    print(f"== {bench.name}: {bench.about}; load average {os.getloadavg()[0]:.1f}", flush=True)
    command = [sys.executable, "-m", f"loadtests.benchmarks.{bench.module}", *options]
    try:
        return not subprocess.run(command, check=False, timeout=DEADLINE).returncode
    except subprocess.TimeoutExpired:
        print(f"{bench.name} was ended after {DEADLINE:g} s", flush=True)
        return False


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
