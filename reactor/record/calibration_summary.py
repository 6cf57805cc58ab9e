"""How well the failure curve predicts what happens, in one line: of all probes, and of the pods that were moved."""

from __future__ import annotations

from msgspec import Struct

from reactor.record.move_checks import CheckedMoves
from reactor.state.calibration import PredictedFailures


class CalibrationSummary(Struct, frozen=True, rename="camel"):
    """Shares are None before there is anything to compare."""

    probes: float = 0.0
    """Counted probes, decayed over weeks."""
    expected: float | None = None
    """The share of them that the curve expected to fail, each before it was counted."""
    observed: float | None = None
    """The share that failed."""
    moves: int = 0
    """Moves that were judged."""
    helped: int = 0
    moves_expected: float | None = None
    """The mean share of its probes that a moved pod was expected to fail on its new node."""
    moves_observed: float | None = None

    def __str__(self) -> str:
        if self.expected is None or self.observed is None:
            return "curve: no probes counted yet, the prior is used"
        text = f"curve: {self.probes:,.0f} probes, predicted {self.expected:.2%} to fail, {self.observed:.2%} failed"
        if self.moves_expected is None or self.moves_observed is None:
            return text
        return (
            f"{text}; {self.moves} move{'' if self.moves == 1 else 's'} judged, {self.helped} helped,"
            f" predicted {self.moves_expected:.2%} to fail there, {self.moves_observed:.2%} failed"
        )


def summarize(predicted: PredictedFailures | None, checked: CheckedMoves | None) -> CalibrationSummary:
    probes = (predicted.probes, predicted.expected, predicted.observed) if predicted is not None else (0.0, None, None)
    moves = (checked.moves, checked.helped, checked.expected, checked.observed) if checked is not None else ()
    return CalibrationSummary(*probes, *moves)
