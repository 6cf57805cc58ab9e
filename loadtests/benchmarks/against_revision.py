"""This version against another one: the key figures of both, measured alternately in one run.

    python -m loadtests.benchmarks.against_revision REV [--rounds 5] [--only NAME ...] [-o json]

Both versions are measured by this version's code through what both have: the command line, the HTTP API, `/proc`.
Only the planners run in the process that times them (`planner_timer`). Every measurement is a process of its own; the
order of the two versions changes from round to round.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

from loadtests.benchmarks.paired_figures import FigureComparison, Figures, as_table, compare
from loadtests.tools.processes import ends_with_us, without_proxies
from loadtests.tools.revisions import Version, two_versions
from reactor.errors import RematchError

DEADLINE = 180.0
"""Of one measurement."""
COMPILE_DEADLINE = 900.0
HELP_RUNS = 5
MOVES, IDLE_SECONDS = 10, 12.0
"""More moves of one namespace would wait for the default limit per 10 minutes."""
SYNC_PODS, SYNC_NODES = 15_000, 500
_PLANNER_TIMER = Path(__file__).with_name("planner_timer.py")
_CLONE = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    name: str
    about: str
    measure: Callable[[Version], Figures]
    seconds: float
    """About how long it takes on two slow cores; only for the time left."""


def _start_up(version: Version) -> Figures:
    times = []
    for _ in range(HELP_RUNS):
        began = time.perf_counter()
        _run([str(version.rematch), "--help"])
        times.append(time.perf_counter() - began)
    return {"rematch --help, ms": median(times) * 1000}


def _controller(version: Version) -> Figures:
    options = ["--rematch", str(version.rematch), "--moves", str(MOVES), "--idle", str(IDLE_SECONDS), "-o", "json"]
    found = json.loads(_run([sys.executable, "-m", "loadtests.benchmarks.reaction", *options], fine=(0, 1)))
    return {
        "rematch run to synced, 1,000 pods, s": found["start_seconds"],
        "event to first write, p50, ms": found["written_p50_ms"],
        "event to first write, p95, ms": found["written_p95_ms"],
        "event to eviction, p50, ms": found["reaction_p50_ms"],
        "event to eviction, p95, ms": found["reaction_p95_ms"],
        "event to replacement bound, p50, ms": found["bound_p50_ms"],
        "CPU per reaction, ms": found["reaction_cpu_ms"],
        "idle CPU, % of a core": found["idle_cpu_share"] * 100,
        "idle memory, MiB": found["idle_resident_mib"],
    }


def _sync(version: Version) -> Figures:
    size = ["--pods", str(SYNC_PODS), "--nodes", str(SYNC_NODES)]
    found = json.loads(
        _run([sys.executable, "-m", "loadtests.benchmarks.sync_run", "--rematch", str(version.rematch), *size])
    )
    label = f"sync of {SYNC_PODS:,} pods"
    return {
        f"{label}, wall s": found["wall_seconds"],
        f"{label}, CPU s": found["cpu_seconds"],
        f"{label}, peak MiB": found["peak_mib"],
    }


def _planners(version: Version) -> Figures:
    found = json.loads(_run([str(version.python), "-P", str(_PLANNER_TIMER)]))
    return {f"planner {name}, CPU s": seconds for name, seconds in found.items()}


MEASUREMENTS = (
    MeasuredFigure("startup", "rematch --help", _start_up, 4.0),
    MeasuredFigure("controller", "start, idling and reaction with 1,000 pods", _controller, 34.0),
    MeasuredFigure("sync", f"initial sync of {SYNC_PODS:,} pods", _sync, 12.0),
    MeasuredFigure("planners", "planners on fixed instances", _planners, 15.0),
)


def _run(command: Sequence[str], *, fine: tuple[int, ...] = (0,), deadline: float = DEADLINE) -> str:
    """Its standard output. It is killed at the deadline, on Ctrl-C, and when this process is killed."""
    process = subprocess.Popen(
        [*ends_with_us(), *command],
        cwd=_CLONE,
        env=without_proxies(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=deadline)
    except subprocess.TimeoutExpired as error:
        raise RematchError(f"{' '.join(command)} did not end within {deadline:g} s") from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode not in fine:
        raise RematchError(f"{' '.join(command)} ended with {process.returncode}: {errors.strip()[-800:]}")
    return output


@dataclass(slots=True)
class Session:
    """What was measured so far; pairs are complete, whenever it is interrupted."""

    measurements: Sequence[MeasuredFigure]
    rounds: int
    pairs: list[tuple[str, Figures, Figures]] = field(default_factory=list)
    _spent: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def run(self, old: Version, new: Version) -> None:
        """Round 0 is discarded: it fills the caches (byte code, the file system's)."""
        for version in (old, new):
            self._progress(f"compiling the planners' kernels, {version.name} (a minute or two)")
            _run([str(version.python), "-P", str(_PLANNER_TIMER), "--compile"], deadline=COMPILE_DEADLINE)
        for number in range(self.rounds + 1):
            for measurement in self.measurements:
                order = (old, new) if number % 2 else (new, old)
                found = {version.name: self._measure(measurement, version, number) for version in order}
                if number:
                    self.pairs.append((measurement.name, found[old.name], found[new.name]))

    def comparisons(self) -> list[FigureComparison]:
        found: list[FigureComparison] = []
        for measurement in self.measurements:
            found += compare([(old, new) for name, old, new in self.pairs if name == measurement.name])
        return found

    def seconds_left(self) -> float:
        """From how long each measurement took so far."""
        left = 0.0
        for measurement in self.measurements:
            spent = self._spent[measurement.name]
            left += (2 * self.rounds + 2 - len(spent)) * (fmean(spent) if spent else measurement.seconds)
        return left

    def _measure(self, measurement: MeasuredFigure, version: Version, number: int) -> Figures:
        self._progress(f"round {number} of {self.rounds}: {measurement.about}, {version.name}")
        began = time.monotonic()
        found = measurement.measure(version)
        self._spent[measurement.name].append(time.monotonic() - began)
        return found

    def _progress(self, line: str) -> None:
        left = int(self.seconds_left())
        print(f"{left // 60}:{left % 60:02} left  {line}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="commit, branch or tag to compare this version with")
    parser.add_argument("--rounds", type=int, default=5, help="5 by default; a verdict needs at least 3")
    names = [measurement.name for measurement in MEASUREMENTS]
    parser.add_argument("--only", action="append", choices=names, help="may be repeated")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    wanted = parser.parse_args()
    if wanted.rounds < 1:
        parser.error("--rounds: at least 1")
    chosen = [measurement for measurement in MEASUREMENTS if not wanted.only or measurement.name in wanted.only]
    session = Session(chosen, wanted.rounds)
    commits: dict[str, str] = {}
    interrupted = False
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        with two_versions(wanted.revision) as (old, new):
            commits = {"old": old.commit, "new": new.commit}
            session.run(old, new)
    except KeyboardInterrupt:
        interrupted = True
        print("interrupted; this is what was measured so far", file=sys.stderr)
    except RematchError as error:
        print(f"error: {error}", file=sys.stderr)
        if not session.pairs:
            return 1
        interrupted = True
    _show(session.comparisons(), commits, wanted.output, complete=not interrupted)
    return 130 if interrupted else 0


def _show(comparisons: Sequence[FigureComparison], commits: dict[str, str], output: str, *, complete: bool) -> None:
    if output == "json":
        figures = [comparison.as_json() for comparison in comparisons]
        document = {**commits, "complete": complete, "loadAverage": os.getloadavg()[0], "figures": figures}
        print(json.dumps(document, indent=2))
        return
    if comparisons:
        print(as_table(comparisons))
        print(f"\nless is better; old: {commits['old'][:12]}, new: {commits['new'][:12]}")


if __name__ == "__main__":
    sys.exit(main())
