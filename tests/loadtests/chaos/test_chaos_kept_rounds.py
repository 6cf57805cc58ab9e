"""Rounds of several runs are added up."""

from __future__ import annotations

from pathlib import Path

from loadtests.chaos.faults import Fault, FaultKind
from loadtests.chaos.injection import Injected
from loadtests.chaos.invariants import Violation
from loadtests.chaos.kept_rounds import keep, kept
from loadtests.chaos.report import page
from loadtests.chaos.requests import Step
from loadtests.chaos.rounds import RoundPlan, RoundResult
from loadtests.chaos.write_kinds import WriteKind

_STEPS = frozenset({Step.POD, Step.OWNER})


def result(seed: int, tree: str) -> RoundResult:
    killed = Injected(
        Fault(FaultKind.KILL_PASSED, 3.0, 7, write=WriteKind.RELEASE), 1.0, 1.0, "a", write=WriteKind.RELEASE
    )
    refused = Injected(Fault(FaultKind.CONFLICT, 1.0, 7, _STEPS), 1.0, 1.0, "PATCH", Step.POD)
    left = (Violation("hint left", "h", 5.0),) if seed == 2 else ()
    return RoundResult(RoundPlan(seed), {Step.POD: seed}, 4, 1, 9.0, 90.0, left, log=(killed, refused), tree=tree)


def test_rounds_are_read_as_they_were_kept_and_added_up(tmp_path: Path) -> None:
    rounds = [result(2, "abc"), result(10, "def")]
    for each in reversed(rounds):
        keep(tmp_path, each)
    assert kept(tmp_path) == rounds
    text = page(kept(tmp_path))
    assert "4 faults in 2 rounds (seeds 2, 10) within 3 minutes, 8 moves" in text
    assert "The trees were abc, def." in text
    assert "Rounds with violations (by seed): 2." in text
    assert "| release | 0 | 2 | 0 | 2 |" in text
    assert "| pod | 12 |" in text
