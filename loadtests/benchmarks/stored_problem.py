"""How large a stored problem and its plan are, and how long they take to write and to read. CPU time of one thread.

python -m loadtests.benchmarks.stored_problem
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

import msgspec

from loadtests.benchmarks.planner_instances import Mix, realistic
from matching.serialization import plan_to_json
from reactor.cli.output import table
from reactor.record.stored_problem import LARGEST, decompress, problem_row, read_problem
from reactor.settings.model import Planner
from reactor.settings.planner import make_planner

T = TypeVar("T")

SIZES = ((1_000, 33), (10_000, 333))
UNHAPPY = 10
REPEATS = 5
HEADERS = ("pods", "problem", "compressed", "write", "read", "plan with stays", "stored plan", "moves")


def main() -> None:
    print(table(HEADERS, [_measure(pods, nodes) for pods, nodes in SIZES]))
    print(f"a problem of more than {LARGEST / 2**20:g} MiB compressed is not stored")


def _measure(pods: int, nodes: int) -> tuple[str, ...]:
    settings = Planner()
    problem = realistic(Mix(pods, nodes, unhappy=UNHAPPY))
    plan = make_planner(settings.name, settings.parameters).plan(problem)
    row, write = _timed(lambda: problem_row("plan", problem, plan, settings))
    (read_back, _), read = _timed(lambda: read_problem(decompress(row)))
    assert read_back == problem
    return (
        f"{pods:,}",
        _kib(len(decompress(row))),
        _kib(len(row.document or b"")),
        f"{write * 1000:.0f} ms",
        f"{read * 1000:.0f} ms",
        _kib(len(msgspec.json.encode(plan_to_json(plan)))),
        _kib(len(msgspec.json.encode(plan_to_json(plan, stays=False)))),
        str(len(plan.moves)),
    )


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    """The result, and the median of the CPU seconds."""
    seconds = []
    for _ in range(REPEATS):
        began = time.process_time()
        result = work()
        seconds.append(time.process_time() - began)
    return result, median(seconds)


def _kib(size: int) -> str:
    return f"{size / 1024:,.0f} KiB"


if __name__ == "__main__":
    main()
