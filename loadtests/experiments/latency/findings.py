"""What a run shows: rounds, moves, whether the best placement was reached and kept, and what the user saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from loadtests.experiments.latency.design import (
    CHANGED_DELAY,
    CHANGED_RANK,
    CHANGING_TEST,
    DELAY,
    MOST_ITERATIONS,
    STARTS,
    Arm,
    Trouble,
)
from loadtests.experiments.latency.processes import quiet
from loadtests.experiments.latency.records import MoveSeen, RunRecord

_AFTER_SILENCE = 5.0
"""Seconds in which a plan that was made of what was heard before may still begin."""
_SHARE_OF_QUIET = 0.9
_WINDOW = 10.0
"""Seconds at the start and at the end of a run over which the user's round trips are averaged."""


@dataclass(frozen=True, slots=True)
class Round:
    iterations: int
    """Plans that moved something."""
    target_moves: int
    probe_moves: int


@dataclass(frozen=True, slots=True)
class Finding:
    record: RunRecord
    rounds: tuple[Round, ...]
    worse: int
    """Moves of a target to a worker that was farther at that time."""
    best_at: float | None
    """When the best placement was reached; in test 3 the one before the change."""
    followed_after: float | None
    """Seconds from the change to the placement that is best since."""
    failed: int
    rtt_first: float | None
    rtt_last: float | None
    moved_in_silence: int

    @property
    def optimal(self) -> bool:
        """The best placement was there, and at the end, too."""
        case = self.record.case
        last = self.record.placements[-1].targets if self.record.placements else ()
        best = case.best if case.test != CHANGING_TEST else case.best_after_change
        return self.best_at is not None and last == best

    @property
    def target_moves(self) -> int:
        return sum(each.target_moves for each in self.rounds)

    @property
    def first_round(self) -> Round:
        return self.rounds[0] if self.rounds else Round(0, 0, 0)

    @property
    def within_iterations(self) -> bool:
        return all(each.iterations <= MOST_ITERATIONS for each in self.rounds)

    @property
    def within_target_moves(self) -> bool:
        """The goal is stated for two targets; three may move once more."""
        most = STARTS[self.record.test].target_moves + self.record.targets - 2
        return all(each.target_moves <= most for each in self.rounds)


def finding(record: RunRecord) -> Finding:
    done = sorted((each for each in record.moves if each.outcome == "done"), key=lambda each: each.started)
    best_at = _placed_at(record, record.case.best, 0.0)
    followed = None
    if record.changed_at is not None:
        at = _placed_at(record, record.case.best_after_change, record.changed_at)
        followed = None if at is None else at - record.changed_at
    rtts = [(each.at, each.seconds) for each in record.requests if each.ending == "ok"]
    silent = record.silent
    return Finding(
        record=record,
        rounds=tuple(_round(moves) for moves in _split(done, record.pace)),
        worse=sum(_is_worse(record, each) for each in done if each.role == "target"),
        best_at=best_at,
        followed_after=followed,
        failed=sum(each.ending != "ok" for each in record.requests),
        rtt_first=_mean([seconds for at, seconds in rtts if at <= _WINDOW * record.pace]),
        rtt_last=_mean([seconds for at, seconds in rtts if at >= record.seconds - 2 * _WINDOW * record.pace]),
        moved_in_silence=0
        if silent is None
        else sum(silent[0] + _AFTER_SILENCE < each.started < silent[1] for each in record.moves),
    )


def _split(moves: Sequence[MoveSeen], pace: float) -> list[list[MoveSeen]]:
    """A quiet time without a move is the end of a round."""
    pause = _SHARE_OF_QUIET * quiet(pace)
    rounds: list[list[MoveSeen]] = []
    ended = float("-inf")
    for move in moves:
        if move.started - ended >= pause:
            rounds.append([])
        rounds[-1].append(move)
        ended = max(ended, move.ended)
    return rounds


def _round(moves: Sequence[MoveSeen]) -> Round:
    targets = sum(each.role == "target" for each in moves)
    return Round(len({each.plan for each in moves}), targets, len(moves) - targets)


def _is_worse(record: RunRecord, move: MoveSeen) -> bool:
    changed = record.changed_at is not None and move.started >= record.changed_at

    def delay(rank: int) -> float:
        return CHANGED_DELAY if changed and rank == CHANGED_RANK else DELAY * rank

    return delay(move.target) > delay(move.source)


def _placed_at(record: RunRecord, wanted: tuple[int, ...], since: float) -> float | None:
    found = (each.at for each in record.placements if each.at >= since and each.targets == wanted)
    return next(found, None)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


@dataclass(frozen=True, slots=True)
class Verdict:
    goal: str
    measured: str
    reached: str
    """As the report page colours it."""


def verdicts(findings: Sequence[Finding]) -> list[Verdict]:
    ours = [each for each in findings if each.record.arm is Arm.REMATCH]
    plain = [each for each in ours if each.record.trouble is Trouble.NONE]
    two = [each for each in plain if each.record.targets == 2]
    lossy = [each for each in ours if each.record.trouble is Trouble.LOSS]
    silent = [each for each in ours if each.record.trouble is Trouble.SILENCE]
    followed = [each for each in ours if each.record.test == CHANGING_TEST]
    requests = sum(len(each.record.requests) for each in ours)
    failed = sum(each.failed for each in ours)
    most = max((each.iterations for run in plain for each in run.rounds), default=0)
    return [
        _verdict("the best placement in every run", plain, lambda each: each.optimal),
        _verdict("no target ever goes to a farther worker", ours, lambda each: each.worse == 0),
        _verdict("a round takes at most 6 iterations", plain, lambda each: each.within_iterations, f"; most: {most}"),
        _verdict(
            "a round takes at most 3, 2 and 3 target moves in tests 1, 2 and 3, with two targets",
            two,
            lambda each: each.within_target_moves,
            f"; most: {_most_moves(two)}",
        ),
        _verdict("no request fails", ours, lambda each: each.failed == 0, f"; {failed} of {requests:,} requests"),
        _verdict("test 3: the change is followed", followed, lambda each: each.followed_after is not None),
        _verdict("with 20 % loss the best placement, too", lossy, lambda each: each.optimal),
        _verdict(
            "nothing moves while the broker is silent, and the best placement is reached afterwards",
            silent,
            lambda each: each.optimal and each.moved_in_silence == 0,
        ),
    ]


def _most_moves(findings: Sequence[Finding]) -> str:
    by_test = groupby(sorted(findings, key=lambda each: each.record.test), key=lambda each: each.record.test)
    most = [max((one.target_moves for each in runs for one in each.rounds), default=0) for _, runs in by_test]
    return ", ".join(map(str, most))


def _verdict(goal: str, findings: Sequence[Finding], holds: Callable[[Finding], bool], more: str = "") -> Verdict:
    if not findings:
        return Verdict(goal, "not run", "cannot be judged")
    kept = sum(map(holds, findings))
    return Verdict(goal, f"{kept} of {len(findings)} runs{more}", "reached" if kept == len(findings) else "not reached")
