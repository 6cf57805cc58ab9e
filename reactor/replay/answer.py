"""From replays to an answer: is the model good enough, what do other settings change, and which one is recommended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reactor.replay.given import Floats
from reactor.replay.replaying import Decided, Replayed

LEVEL = 0.8
"""Of all intervals."""
MOST_UNSEEN = 0.1
"""Share of the pod-minutes at loads that were never seen, above which an answer is not supported."""
_DRAWS = 4_000
_T90 = (3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372)
"""Student's t at 90 %, by degrees of freedom from 1 on; beyond, the last one is on the safe side."""


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class Reproduced:
    """One figure of the last days, as recorded and as replayed with the settings in force."""

    what: str
    recorded: float
    replayed: float
    interval: Interval

    @property
    def passed(self) -> bool:
        return self.interval.holds(self.recorded)


@dataclass(frozen=True, slots=True)
class Gate:
    days: float
    figures: tuple[Reproduced, ...]

    @property
    def passed(self) -> bool:
        return all(figure.passed for figure in self.figures)


@dataclass(frozen=True, slots=True)
class ModelError:
    """How far the days of the record are from their replay with the settings in force: by day, where it is known."""

    moves: Floats
    unhappy: Floats


NO_ERROR = ModelError(np.zeros(1), np.zeros(1))
"""Of the settings in force against themselves."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Against the replay of the settings in force, over all days."""

    mean: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class Candidate:
    name: str
    changes: dict[str, Any]
    """Paths of settings and their values; empty for the settings in force."""


@dataclass(frozen=True, slots=True)
class Differs:
    """The first decision that is another one. Empty texts: nothing was done then."""

    at: float
    in_force: str
    candidate: str


@dataclass(frozen=True, slots=True)
class Answer:
    candidate: Candidate
    moves: float
    """Per day, the mean of the replays."""
    unhappy: float
    """Pod-minutes per day."""
    more_moves: Difference
    more_unhappy: Difference
    cost: Difference
    """Unhappy minutes and the price of the moves together."""
    unseen: float
    first_difference: Differs | None
    on_front: bool = False

    @property
    def supported(self) -> bool:
        return self.unseen <= MOST_UNSEEN


def judge(recorded: tuple[float, float], replays: Sequence[Replayed], days: float, unit: float) -> Gate:
    """`recorded`: moves and unhappy pod-minutes. `unit`: pod-minutes in which unhappiness is counted."""
    moves = np.array([each.moves.sum() for each in replays])
    unhappy = np.array([each.unhappy.sum() for each in replays])
    return Gate(
        days,
        (
            Reproduced("moves", recorded[0], float(moves.mean()), _next_one(moves, 1.0)),
            Reproduced("unhappy pod-minutes", recorded[1], float(unhappy.mean()), _next_one(unhappy, unit)),
        ),
    )


def _next_one(values: Floats, unit: float) -> Interval:
    """Where one more replay would be. Counts are never surer than chance allows."""
    mean, number = float(values.mean()), len(values)
    spread = max(float(values.std(ddof=1)) if number > 1 else 0.0, float(np.sqrt(unit * max(mean, unit))))
    reach = _T90[min(max(number - 2, 0), len(_T90) - 1)] * spread * float(np.sqrt(1 + 1 / number))
    return Interval(max(0.0, mean - reach), mean + reach)


def answer(
    candidate: Candidate, replays: Sequence[Replayed], in_force: Sequence[Replayed], price: float, error: ModelError
) -> Answer:
    """Replays in pairs: with the same response and the same chance. `price`: pod-minutes that a move costs."""
    moves, unhappy = _by_day(replays, in_force, "moves"), _by_day(replays, in_force, "unhappy")
    days = moves.shape[1]
    return Answer(
        candidate,
        float(np.mean([each.moves.sum() for each in replays])) / days,
        float(np.mean([each.unhappy.sum() for each in replays])) / days,
        _difference(moves, error.moves),
        _difference(unhappy, error.unhappy),
        _difference(unhappy + price * moves, error.unhappy, price * error.moves),
        float(np.mean([each.unseen / max(each.pod_minutes, 1.0) for each in replays])),
        _first_difference(in_force[0].decided, replays[0].decided),
    )


def _by_day(replays: Sequence[Replayed], in_force: Sequence[Replayed], what: str) -> Floats:
    """By replay and day."""
    pairs = zip(replays, in_force, strict=False)
    return np.stack([getattr(mine, what) - getattr(theirs, what) for mine, theirs in pairs])


def _difference(by_day: Floats, *errors: Floats) -> Difference:
    """Days are drawn again, and replays, which differ by the error of the response and by chance.

    On top of each day comes the model's error of some day: it is known with the settings in force, and other settings
    are replayed no better. What is too much with all settings is not in a difference, so it may be either way."""
    source = np.random.default_rng(20_261_118)
    number, days = by_day.shape
    replay = source.integers(number, size=_DRAWS)
    drawn = source.integers(days, size=(_DRAWS, days))
    totals = by_day[replay[:, np.newaxis], drawn].sum(axis=1)
    for error in errors:
        of_days = error[source.integers(len(error), size=(_DRAWS, days))]
        totals += (of_days * source.choice((-1.0, 1.0), of_days.shape)).sum(axis=1)
    low, high = np.quantile(totals, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Difference(float(by_day.sum(axis=1).mean()), Interval(float(low), float(high)))


def _first_difference(in_force: Sequence[Decided], candidate: Sequence[Decided]) -> Differs | None:
    for mine, other in zip(in_force, candidate, strict=False):
        if (mine.at, mine.text) != (other.at, other.text):
            at = min(mine.at, other.at)
            return Differs(at, mine.text if mine.at == at else "", other.text if other.at == at else "")
    shorter = min(len(in_force), len(candidate))
    if len(in_force) > shorter:
        return Differs(in_force[shorter].at, in_force[shorter].text, "")
    if len(candidate) > shorter:
        return Differs(candidate[shorter].at, "", candidate[shorter].text)
    return None


def pareto(answers: Sequence[Answer]) -> list[bool]:
    """Of each, whether no other has fewer moves and no more unhappy minutes, or the other way round."""
    points = [(each.moves, each.unhappy) for each in answers]
    return [
        not any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in points)
        for point in points
    ]


def recommended(gate: Gate, answers: Sequence[Answer]) -> tuple[Answer | None, str]:
    """The supported setting that costs least, if it certainly costs less than what is in force; and why."""
    if not gate.passed:
        wrong = "; ".join(
            f"{each.what}: {each.recorded:.0f} recorded, {each.replayed:.0f} replayed"
            f" ({each.interval.low:.0f} to {each.interval.high:.0f})"
            for each in gate.figures
            if not each.passed
        )
        return None, f"the replay does not reproduce what was recorded, so nothing is recommended: {wrong}"
    better = [each for each in answers if each.supported and each.candidate.changes and each.cost.interval.high < 0]
    if not better:
        return None, "no setting is certainly better than those in force: keep them"
    best = min(better, key=lambda each: each.cost.mean)
    return best, f"{best.candidate.name}: {-best.cost.mean:.0f} pod-minutes less, the price of its moves included"
