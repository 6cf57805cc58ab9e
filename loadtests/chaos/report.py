"""docs/chaos.md from the results of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from loadtests.chaos.faults import FaultKind
from loadtests.chaos.invariants import INVARIANTS
from loadtests.chaos.rounds import RoundResult


def write_report(path: Path, results: Sequence[RoundResult]) -> None:
    path.write_text(page(results))


def page(results: Sequence[RoundResult]) -> str:
    injected: Counter[FaultKind] = sum((result.injected for result in results), Counter())
    return str(injected) + "".join(INVARIANTS)
