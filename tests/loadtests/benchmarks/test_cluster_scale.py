from __future__ import annotations

import pytest

from loadtests.benchmarks.cluster_scale import BAR_SECONDS, Reaction, ScaleResult, report
from loadtests.benchmarks.process import ProcessUse

FAST, SLOW = Reaction(BAR_SECONDS / 2, 0.5, 1.0), Reaction(BAR_SECONDS * 2, 1.0, 3.0)
USE = ProcessUse(1.0, 100.0, 120.0)


def result(*reactions: Reaction, missed: int = 0) -> ScaleResult:
    return ScaleResult(10, 100, "unhappy", (0.0, 0.0), 1.0, 1.0, USE, USE, reactions, missed)


@pytest.mark.parametrize(
    ("measured", "within"),
    [
        (result(FAST, FAST), True),
        (result(FAST, SLOW), False),
        (result(FAST, missed=1), False),
        (result(missed=2), False),
        (result(), False),
    ],
)
def test_an_event_without_a_move_is_not_within_the_bar(measured: ScaleResult, within: bool) -> None:
    assert measured.within_bar is within
    assert ("events without a move" in report(measured)) is bool(measured.missed)
