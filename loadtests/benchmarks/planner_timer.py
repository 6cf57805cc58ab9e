"""CPU seconds of planners on fixed instances, in whichever version of the project the running Python has installed.

    PYTHON -P planner_timer.py [--compile]

Run by its path, so that one file measures several versions. Of a version it needs only what its own `planners_speed`
imports. Every plan is the first of a new problem, as in the controller's cycles. With --compile it only compiles the
kernels of that version, which are then kept on disk.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

INSTANCES = (
    ("stable", 5_000, 500),
    ("balance", 2_000, 200),
    ("refine", 5_000, 500),
    ("greedy", 5_000, 500),
    ("genetic", 100, 10),
)
"""Planner, pods, nodes."""
REPEATS = 5
"""The fastest counts: other work on the machine only ever adds to it."""


def main() -> None:
    from loadtests.benchmarks import planners_speed as own

    version: Any = own
    version.warm_up()
    if "--compile" in sys.argv:
        return
    found = {}
    for planner, pods, nodes in INSTANCES:
        mix, options = version.Mix(pods, nodes), version.Options(scope=version.Scope.CLUSTER)
        loaded = version.load_planner(planner)
        loaded.plan(version.realistic(mix, options))
        times = [_seconds(loaded, version.realistic(mix, options)) for _ in range(REPEATS)]
        found[f"{planner} {pods} x {nodes}"] = min(times)
    print(json.dumps(found))


def _seconds(planner: Any, problem: Any) -> float:
    started = time.process_time()
    _ = planner.plan(problem).certificate.blocking_pairs  # versions differ in when they count
    return time.process_time() - started


if __name__ == "__main__":
    main()
