from __future__ import annotations

import asyncio

import pytest
import structlog

from reactor.record.failures import LONGEST_PAUSE, Failures, problems, stage
from reactor.record.heartbeat import Heartbeat
from reactor.record.metrics import Instruments
from tests.support.clock import VirtualClock


def make_failures() -> tuple[Failures, VirtualClock]:
    clock = VirtualClock()
    return Failures(clock, Instruments()), clock


def test_an_error_is_counted_by_its_stage_and_the_pauses_grow_until_it_works_again() -> None:
    failures, _ = make_failures()

    def fail() -> Exception:
        with pytest.raises(ValueError, match="odd") as caught, stage("plan"):
            raise ValueError("odd")
        return caught.value

    pauses = [failures.report("cycle", fail()) for _ in range(8)]

    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    assert failures.instruments.registry.get_sample_value("rematch_cycle_failures_total", {"stage": "plan"}) == 8
    assert list(problems(failures.current)) == ["cycle failed and is tried again: ValueError: odd"]
    failures.succeeded("cycle")
    assert failures.current == {}
    assert failures.report("cycle", ValueError("odd")) == 1


def test_the_same_error_is_logged_once_in_a_while() -> None:
    failures, clock = make_failures()
    with structlog.testing.capture_logs() as logs:
        for _ in range(50):
            failures.report("cycle", ValueError("odd"))
        failures.report("cycle", ValueError("another"))
        clock.set(clock.now() + 301)
        failures.report("cycle", ValueError("odd"))
    errors = [(line["error"], line["repeated"]) for line in logs if line["event"] == "failed"]
    assert errors == [("ValueError: odd", 0), ("ValueError: another", 0), ("ValueError: odd", 49)]


async def test_a_task_that_fails_begins_again() -> None:
    failures, clock = make_failures()
    runs: list[float] = []

    async def work() -> None:
        runs.append(clock.now())
        if len(runs) < 3:
            raise ExceptionGroup("unhandled errors", [KeyError("x")])

    task = asyncio.create_task(failures.keep_running("watch", work))
    await clock.advance(10)
    await task
    assert [at - runs[0] for at in runs] == [0, 1, 3]
    assert failures.current == {"watch": "KeyError: 'x'"}


def test_a_loop_that_has_not_started_is_not_stalled() -> None:
    clock = VirtualClock()
    heartbeat = Heartbeat("loop", clock)
    clock.set(clock.now() + 1000)
    assert heartbeat.stalled(60) == ""
    heartbeat.beat()
    clock.set(clock.now() + 60)
    assert heartbeat.stalled(60) == ""
    clock.set(clock.now() + 1)
    assert heartbeat.stalled(60) == "the loop has not run for 61 s"
