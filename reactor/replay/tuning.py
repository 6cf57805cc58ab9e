"""All replays of a tuning, in processes: the gate, the settings in force, and the others."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace

import numpy as np

from predictors.failure_response import FailureResponse
from reactor.errors import InputError
from reactor.replay.answer import NO_ERROR, Answer, Candidate, Gate, ModelError, answer, judge, pareto, recommended
from reactor.replay.fitting import fitted_responses, trained_steps
from reactor.replay.given import Given
from reactor.replay.recorded import STEP, Recorded
from reactor.replay.replaying import Replay, Replayed, recorded_unhappy
from reactor.settings.duration import format_duration
from reactor.settings.model import Settings

LEAST_REPLAYS, MOST_REPLAYS = 4, 8
"""Of each setting: chance counts for more where there are few pods, and time for less."""
_PODS_AND_STEPS = 40_000_000
"""Of all replays of a setting together: 1,000 pods and 30 days, four times."""
GATE_REPLAYS = 8
"""Of the settings in force, in the last days."""
LEAST_DAYS = 3
_UNIT = STEP / 60


@dataclass(frozen=True, slots=True)
class Tuning:
    days: float
    gate: Gate
    answers: tuple[Answer, ...]
    """The settings in force first."""
    recommended: Answer | None
    why: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Job:
    settings: int
    replay: int
    first: int


Progress = Callable[[int, int], None]
"""Replays that are done, and of how many."""


def tune(
    recorded: Recorded,
    given: Given,
    wanted: Sequence[tuple[Candidate, Settings]],
    jobs: int,
    show: Progress = lambda _done, _of: None,
) -> Tuning:
    """The settings in force are the first of `wanted`. If their replay does not reproduce the record, the others are
    not replayed."""
    if given.days < LEAST_DAYS:
        measured = format_duration(float(given.measured.sum() * STEP))
        least = f"measurements from {LEAST_DAYS} days are needed, to fit the model and to check it"
        raise InputError(f"the history covers {measured}, and {least}; run the controller longer (docs/tune.md)")
    of = GATE_REPLAYS + replays_of(given) * len(wanted)
    with _Pool(given, [settings for _, settings in wanted], jobs) as pool:
        gate = pool.gate(recorded, lambda done: show(done, of))
        answers = pool.answers(recorded, wanted, lambda done: show(GATE_REPLAYS + done, of)) if gate.passed else ()
    best, why = recommended(gate, answers)
    return Tuning(given.steps * STEP / given.day, gate, answers, best, why, given.notes)


def answers_of(
    recorded: Recorded, given: Given, wanted: Sequence[tuple[Candidate, Settings]], jobs: int
) -> tuple[Gate, tuple[Answer, ...]]:
    """The answers also where the gate stops them: to see what it stops."""
    with _Pool(given, [settings for _, settings in wanted], jobs) as pool:
        return pool.gate(recorded, lambda _: None), pool.answers(recorded, wanted, lambda _: None)


def _gate_begin(given: Given, in_force: Settings) -> int:
    """The days that are not fitted, as far as finished moves are kept."""
    kept = given.steps - int(in_force.history.keep // STEP)
    return min(max(trained_steps(given), kept, 0), given.steps - 1)


def replays_of(given: Given) -> int:
    fit = _PODS_AND_STEPS // (len(given.workload) * given.steps)
    return min(max(fit, LEAST_REPLAYS), MOST_REPLAYS)


def model_error(recorded: Recorded, given: Given, in_force: Settings, replays: Sequence[Replayed]) -> ModelError:
    """Moves are known as far as they are kept."""
    began = [int((row.started - given.begin) // given.day) for row in recorded.moves]
    moves = np.bincount(began, minlength=given.days) - np.mean([each.moves for each in replays], axis=0)
    known = given.day_of(max(given.steps - int(in_force.history.keep // STEP), 0))
    return ModelError(moves[known:], recorded_unhappy(given) - np.mean([each.unhappy for each in replays], axis=0))


class _Pool:
    """Processes that know what is given. With one job everything runs in this one."""

    def __init__(self, given: Given, settings: Sequence[Settings], jobs: int) -> None:
        self._parts: _Parts = (
            given,
            tuple(fitted_responses(given, max(GATE_REPLAYS, replays_of(given)))),
            tuple(settings),
        )
        self._pool: ProcessPoolExecutor | None = None
        if jobs > 1:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_take, initargs=self._parts)

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def gate(self, recorded: Recorded, show: Callable[[int], None]) -> Gate:
        given, _, settings = self._parts
        first = _gate_begin(given, settings[0])
        replayed = self._run([_Job(0, replay, first) for replay in range(GATE_REPLAYS)], show)
        moves = sum(row.started >= given.begin + first * STEP for row in recorded.moves)
        unhappy = float(recorded_unhappy(given, first).sum())
        days = (given.steps - first) * STEP / given.day
        return judge((moves, unhappy), list(replayed.values()), days, _UNIT)

    def answers(
        self, recorded: Recorded, wanted: Sequence[tuple[Candidate, Settings]], show: Callable[[int], None]
    ) -> tuple[Answer, ...]:
        given, _, settings = self._parts
        every = range(replays_of(given))
        replayed = self._run([_Job(number, replay, 0) for number in range(len(wanted)) for replay in every], show)
        by_settings = [[replayed[_Job(number, replay, 0)] for replay in every] for number in range(len(wanted))]
        error = model_error(recorded, given, settings[0], by_settings[0])
        price = settings[0].planner.move_price
        errors = [NO_ERROR, *(error for _ in wanted[1:])]
        found = [
            answer(candidate, replays, by_settings[0], price, each)
            for (candidate, _), replays, each in zip(wanted, by_settings, errors, strict=True)
        ]
        return tuple(replace(each, on_front=front) for each, front in zip(found, pareto(found), strict=True))

    def _run(self, jobs: Sequence[_Job], show: Callable[[int], None]) -> dict[_Job, Replayed]:
        found: dict[_Job, Replayed] = {}
        if self._pool is None:
            for job in jobs:
                found[job] = _replayed(self._parts, job)
                show(len(found))
            return found
        futures = {self._pool.submit(_replay_taken, job): job for job in jobs}
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            show(len(found))
        return found


_Parts = tuple[Given, tuple[FailureResponse, ...], tuple[Settings, ...]]
_taken: list[_Parts] = []
"""What is given, in a process of a pool."""


def _take(given: Given, responses: tuple[FailureResponse, ...], settings: tuple[Settings, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _taken.append((given, responses, settings))


def _replay_taken(job: _Job) -> Replayed:
    return _replayed(_taken[0], job)


def _replayed(parts: _Parts, job: _Job) -> Replayed:
    given, responses, settings = parts
    return Replay(given, responses[job.replay], settings[job.settings], job.replay, job.first).run()
