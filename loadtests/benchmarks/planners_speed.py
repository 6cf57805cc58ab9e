"""How long the planners take, and how that grows. Warm times on one core; what compiling costs is shown apart.

    python -m loadtests.benchmarks.planners_speed [--only NAME ...] [--curve] [--images docs/images] [-o json]

Each case runs in a process of its own, so that its memory and its first run are its own. `open` makes arrays of the
problem (kept with it: only the first plan of a problem pays), `find` finds the placement, `tell` writes reasons and
measures, `certify` verifies independently. The bar is compared with `find` and, where the case says so, with `tell` or
with everything. Seconds of CPU, which other work on the machine disturbs least; everything here is one thread.

`stable` is asked for the stable matching as it is (`only_if_better` off): nobody is unhappy in these clusters, so by
default it would find the matching and not take it.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from loadtests.benchmarks.planner_instances import Mix, realistic
from matching.compilation import warm_up
from matching.plan import BlockingPairs, Certificate, Plan, Planner
from matching.problem import Options, Problem, Scope
from matching.registry import load_planner
from matching.verify import certify

DEADLINE = 900.0
LARGE, MIDDLE = (150_000, 5_000), (10_000, 1_000)
CURVE = ((1_000, 33), (5_000, 167), (10_000, 333), (20_000, 667), (50_000, 1_667), (100_000, 3_333), (150_000, 5_000))
CURVE_PLANNERS = ("stable", "balance", "refine", "greedy")


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    planner: str
    size: tuple[int, int]
    bar: float
    """Seconds."""
    scope: Scope = Scope.CLUSTER
    unhappy: int = 0
    repeats: int = 3
    told: bool = False
    """The bar is about the written plan as well."""
    verified: bool = False
    """The certificate is made as well, and the bar is about everything."""
    inertia: float = 0.2


CASES = (
    Case("stable 150,000 x 5,000", "stable", LARGE, 2.0),
    Case("stable 150,000 x 5,000, verified", "stable", LARGE, 10.0, repeats=1, verified=True),
    Case("stable 150,000 x 5,000, inertia 0", "stable", LARGE, 2.0, inertia=0.0),
    Case("stable 10,000 x 1,000", "stable", MIDDLE, 0.1),
    Case("scope unhappy, 10 of 150,000 x 5,000", "stable", LARGE, 0.1, Scope.UNHAPPY, 10, told=True),
    Case("refine 10,000 x 1,000", "refine", MIDDLE, 1.0),
    Case("greedy 10,000 x 1,000", "greedy", MIDDLE, 1.0),
    Case("balance 10,000 x 1,000", "balance", MIDDLE, 1.0),
    Case("genetic 200 x 20, 200 generations x 100", "genetic", (200, 20), 2.0),
)


@dataclass(frozen=True, slots=True)
class Times:
    open: float
    find: float
    tell: float
    certify: float

    @property
    def whole(self) -> float:
        return self.open + self.find + self.tell + self.certify


@dataclass(frozen=True, slots=True)
class SpeedResult:
    name: str
    bar: float
    warm: Times
    judged: float
    """What is compared with the bar, in seconds."""
    first: float
    """Of the first run what the warm ones do not need, above all opening the problem."""
    compiled: float
    """Loading the kernels, and compiling those that are not on disk yet."""
    moves: int
    blocking_pairs: int | None
    """None when the plan was not verified."""
    problem_mib: float
    """What the process held before the first plan."""
    peak_mib: float


def run(case: Case) -> SpeedResult:
    """In this process."""
    pods, nodes = case.size
    compiled = warm_up() or 0.0
    as_it_is = case.planner == "stable" and case.unhappy == 0
    options = Options(scope=case.scope, inertia=case.inertia, only_if_better=not as_it_is)
    problem = realistic(Mix(pods, nodes, unhappy=case.unhappy), options)
    planner, before = load_planner(case.planner), _peak_mib()
    cold, plan = timed_plan(planner, problem, case.verified)
    warm = [timed_plan(planner, problem, case.verified)[0] for _ in range(case.repeats)]
    middle = Times(*(statistics.median(getattr(each, part) for each in warm) for part in Times.__slots__))
    return SpeedResult(
        name=case.name,
        bar=case.bar,
        warm=middle,
        judged=middle.whole if case.verified else middle.find + case.told * (middle.open + middle.tell),
        first=max(0.0, cold.whole - middle.whole),
        compiled=compiled,
        moves=len(plan.moves),
        blocking_pairs=plan.certificate.blocking_pairs if case.verified else None,
        problem_mib=before,
        peak_mib=_peak_mib(),
    )


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed_plan(planner: Planner, problem: Problem, verified: bool) -> tuple[Times, Plan]:
    spent: Counter[str] = Counter()
    module: Any = sys.modules[type(planner).__module__]
    writing = sys.modules[module.write_plan.__module__]
    certificate = _counted if verified else _none
    with (
        _stopwatch(spent, module, "prepare"),
        _stopwatch(spent, module, "write_plan"),
        patch.object(writing, "certify", certificate),
        _stopwatch(spent, writing, "certify"),
    ):
        started = time.process_time()
        plan = planner.plan(problem)
        whole = time.process_time() - started
    opened, told, certified = (spent[part] / 1e9 for part in ("prepare", "write_plan", "certify"))
    return Times(opened, whole - opened - told, told - certified, certified), plan


def _counted(*given: Any) -> Certificate:
    certificate = certify(*given)
    _ = certificate.pairs
    return certificate


def _none(*_: object, **__: object) -> Certificate:
    return Certificate(True, (), BlockingPairs)


@contextmanager
def _stopwatch(spent: Counter[str], module: Any, name: str) -> Iterator[None]:
    """Every planner opens the problem, finds a placement and hands it on to be written: the two borders are timed."""
    original: Callable[..., Any] = getattr(module, name)

    def timed(*arguments: Any, **named: Any) -> Any:
        started = time.process_time_ns()
        try:
            return original(*arguments, **named)
        finally:
            spent[name] += time.process_time_ns() - started

    with patch.object(module, name, timed):
        yield


def in_own_process(case: Case) -> SpeedResult | str:
    """A text says why there is no result."""
    command = [sys.executable, "-m", "loadtests.benchmarks.planners_speed", "--here", json.dumps(asdict(case))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    except subprocess.TimeoutExpired:
        return f"not done in {DEADLINE:g} s"
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    told = json.loads(done.stdout)
    return SpeedResult(**{**told, "warm": Times(**told["warm"])})


def _case(plain: dict[str, Any]) -> Case:
    return Case(**{**plain, "size": tuple(plain["size"]), "scope": Scope(plain["scope"])})


def table(results: Sequence[tuple[Case, SpeedResult | str]]) -> str:
    head = "| case | bar, s | judged, s | | open | find | tell | certify | first | compile | MiB | moves | pairs |"
    lines = [head, "|---" * 13 + "|"]
    for case, result in results:
        if isinstance(result, str):
            lines.append(f"| {case.name} | {case.bar:g} | - | {result} | | | | | | | | | |")
            continue
        warm = " | ".join(f"{getattr(result.warm, part):.2f}" for part in Times.__slots__)
        verdict = "ok" if result.judged < case.bar else "missed"
        pairs = "-" if result.blocking_pairs is None else result.blocking_pairs
        memory = f"{result.problem_mib:.0f} + {result.peak_mib - result.problem_mib:.0f}"
        rest = f"{result.first:.2f} | {result.compiled:.1f} | {memory} | {result.moves} | {pairs}"
        lines.append(f"| {case.name} | {case.bar:g} | {result.judged:.3f} | {verdict} | {warm} | {rest} |")
    return "\n".join(lines)


def growth(planners: Sequence[str], most: int) -> dict[str, list[tuple[int, float]]]:
    """Pods and seconds to find a placement, 30 pods per node."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for planner in planners:
        for size in CURVE:
            if size[0] <= most:
                result = in_own_process(Case(f"{planner} {size[0]}", planner, size, 0.0, repeats=1))
                print(f"{planner} {size[0]}: {result if isinstance(result, str) else result.judged}", file=sys.stderr)
                if isinstance(result, str):
                    break
                curves.setdefault(planner, []).append((size[0], result.judged))
    return curves


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="cases whose name contains this")
    parser.add_argument("--curve", action="store_true", help="growth from 1,000 pods on instead of the cases")
    parser.add_argument("--most", type=int, default=LARGE[0], help="largest number of pods of the curve")
    parser.add_argument("--images", type=Path, help="folder for the plot of the curve (needs matplotlib)")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(asdict(run(_case(json.loads(arguments.here))))))
        return 0
    if arguments.curve:
        curves = growth(CURVE_PLANNERS, arguments.most)
        print(json.dumps(curves))
        if arguments.images:
            from loadtests.benchmarks.plots import plot_growth

            plot_growth(curves, arguments.images)
        return 0
    wanted = [case for case in CASES if not arguments.only or any(part in case.name for part in arguments.only)]
    results = [_announced(case) for case in wanted]
    _show(results, arguments.output)
    return int(any(isinstance(result, str) or result.judged >= case.bar for case, result in results))


def _announced(case: Case) -> tuple[Case, SpeedResult | str]:
    print(f"{case.name} ...", file=sys.stderr, flush=True)
    return case, in_own_process(case)


def _show(results: Sequence[tuple[Case, SpeedResult | str]], output: str) -> None:
    if output == "json":
        print(json.dumps([told if isinstance(told, str) else asdict(told) for _, told in results], indent=1))
    else:
        print(table(results))


if __name__ == "__main__":
    sys.exit(main())
