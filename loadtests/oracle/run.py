"""A run over many random clusters: progress, what was found so far, and small cases of it."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loadtests.oracle.comparison import ClusterResult, Failure, Found, compare
from loadtests.oracle.differences import INTENDED, PAIR, Danger
from loadtests.oracle.judge import Oracle, open_oracle
from loadtests.oracle.random_cluster import random_cluster
from loadtests.oracle.reproduction import smallest_case, write_case
from loadtests.tools.processes import Progress
from loadtests.tools.programs import to_stderr
from reactor.cli.output import table

_REPORT_SECONDS = 15.0
_MOST_CASES = 12
_SECONDS_PER_CASE = 60.0
_MOST_LINES = 10
_LONGEST_CAUSE = 110


@dataclass
class Run:
    seeds: Sequence[int]
    cases: Path
    cautious: bool = False
    """Whether cautious differences without a name are shrunk, too."""
    progress: Progress = to_stderr
    result: ClusterResult = field(default_factory=ClusterResult)
    written: list[tuple[Path, str]] = field(default_factory=list)
    seconds: float = 0.0

    async def run(self) -> None:
        """Stopped at any time, `result` and `written` have what was found until then."""
        started = reported = time.monotonic()
        async with open_oracle() as oracle:
            for number, seed in enumerate(self.seeds, start=1):
                self.result.add(await compare(random_cluster(seed), oracle))
                now = time.monotonic()
                self.seconds = now - started
                if now - reported >= _REPORT_SECONDS or number == len(self.seeds):
                    reported = now
                    self.progress(self._state(number))
            await self._shrink(oracle)

    def _state(self, number: int) -> str:
        left = self.seconds / number * (len(self.seeds) - number)
        return (
            f"{number} of {len(self.seeds)} clusters: {self.result.pairs:,} pairs, {self.result.moves.total():,} moves,"
            f" {len(self.result.dangerous)} dangerous, {len(self.result.failures)} failures; about {left:.0f} s left"
        )

    async def _shrink(self, oracle: Oracle) -> None:
        """One of each kind, of a pair rather than of a move."""
        wanted: dict[str, Found | Failure] = {}
        for failure in self.result.failures:
            wanted.setdefault(f"failure {failure.kind}", failure)
        for found in sorted(self.result.found, key=lambda each: each.difference.asked_by != PAIR):
            if found.unintended_danger or (self.cautious and not found.intended):
                wanted.setdefault(f"{found.difference.danger} {found.difference.cause}", found)
        for name, each in list(wanted.items())[:_MOST_CASES]:
            self.progress(f"shrinking: {name} (seed {each.seed})")
            items = await smallest_case(each, oracle, seconds=_SECONDS_PER_CASE)
            text = str(each if isinstance(each, Failure) else each.difference)
            self.written.append((write_case(self.cases, f"{each.seed}-{_file_name(name)}", items), text))

    def report(self) -> str:
        return "\n".join([*self._numbers(), *self._tables(), *self._cases()])

    def _numbers(self) -> Iterator[str]:
        found = self.result
        yield (
            f"{found.clusters:,} clusters, {found.pairs:,} pairs of pod and node ({found.fitting:,} fit),"
            f" {found.moves.total():,} moves at their turn, {self.seconds:.0f} s"
        )
        if found.refused:
            yield f"{len(found.refused)} objects that the API server refuses, whose clusters were left out; the first:"
            yield from (f"  {each}" for each in found.refused[:_MOST_LINES])
        yield f"moves: {_counts(found.moves)}"
        yield f"refusals of kube-scheduler: {_counts(found.refusals)}"
        if found.no_plan:
            yield f"problems that planners refused: {_counts(found.no_plan)}"
        yield from (f"FAILED {each}" for each in found.failures[:_MOST_LINES])

    def _tables(self) -> Iterator[str]:
        rows: dict[tuple[Danger, str, str], Counter[bool]] = {}
        for each in self.result.found:
            key = (each.difference.danger, each.intended, each.difference.cause)
            rows.setdefault(key, Counter())[each.difference.asked_by == PAIR] += 1
        if rows:
            yield ""
            yield table(
                ("difference", "intended", "pairs", "moves", "who says no, and why"), sorted(map(_row, rows.items()))
            )
            used = {name for _, name, _ in rows}
            yield ""
            yield from (f"{each.name}: {each.reason}" for each in INTENDED if each.name in used)
            yield ""
        dangerous = len(self.result.dangerous)
        yield f"{dangerous} dangerous differences without a name, {len(self.result.failures)} failures"

    def _cases(self) -> Iterator[str]:
        for path, text in self.written:
            yield ""
            yield text
            yield f"  rematch plan -f {path}"


def _row(counted: tuple[tuple[Danger, str, str], Counter[bool]]) -> tuple[str, str, int, int, str]:
    (danger, name, cause), numbers = counted
    return danger, name, numbers[True], numbers[False], cause[:_LONGEST_CAUSE]


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counter.most_common() if number)


def _file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50]
