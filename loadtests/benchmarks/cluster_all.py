"""`make bench-cluster`: what needs a real control plane, one after the other, each in a process of its own.

    python -m loadtests.benchmarks.cluster_all [--results docs/benchmarks] [NAME ...]

A figure of a busy machine says little: the load average is part of every result.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_DEADLINE = 7200.0
"""Several times what the longest takes on two cores."""


@dataclass(frozen=True, slots=True)
class Bench:
    name: str
    module: str
    about: str


BENCHES = (
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help=f"any of: {' '.join(bench.name for bench in BENCHES)}")
    parser.add_argument("--results", type=Path, default=Path("docs/benchmarks"), help="folder for the JSON files")
    wanted = parser.parse_args()
    if unknown := set(wanted.only) - {bench.name for bench in BENCHES}:
        parser.error(f"unknown bench {', '.join(sorted(unknown))}")
    wanted.results.mkdir(parents=True, exist_ok=True)
    missed = [
        bench.name for bench in BENCHES if not wanted.only or bench.name in wanted.only if not _run(bench, wanted)
    ]
    if missed:
        print(f"missed their bars: {', '.join(missed)}")
    return 1 if missed else 0


def _run(bench: Bench, wanted: argparse.Namespace) -> bool:
    print(f"== {bench.name}: {bench.about}; load average {os.getloadavg()[0]:.1f}", flush=True)
    into = wanted.results / f"cluster-{bench.name}.json"
    command = [sys.executable, "-m", f"loadtests.benchmarks.{bench.module}", "--into", str(into)]
    try:
        return not subprocess.run(command, check=False, timeout=_DEADLINE).returncode
    except subprocess.TimeoutExpired:
        print(f"{bench.name} was ended after {_DEADLINE:g} s", flush=True)
        return False


if __name__ == "__main__":
    sys.exit(main())
