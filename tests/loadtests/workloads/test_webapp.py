from __future__ import annotations

from typing import Any

import pytest

from loadtests.workloads.app_spec import AppSpec
from loadtests.workloads.webapp import WebApp

SPEC = AppSpec(work_ms=100, work_spread=0.1, probe_work_ms=2, workers=2, backlog=1, memory_mib=10)


class Answers:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def test_workers_then_backlog_then_refusal(manual_cpu: Any) -> None:
    app, answers = WebApp(SPEC, manual_cpu, "pod", seed=1), Answers()
    taken = [app.accept("/", answers) for _ in range(4)]
    assert [request is not None for request in taken] == [True, True, True, False]
    assert len(manual_cpu.jobs) == 2
    manual_cpu.finish_next()
    assert answers.count == 1
    assert len(manual_cpu.jobs) == 2


def test_probes_wait_in_the_same_line(manual_cpu: Any) -> None:
    app, work, probe = WebApp(SPEC, manual_cpu, "pod", seed=1), Answers(), Answers()
    app.accept("/", work)
    app.accept("/", work)
    app.accept("/healthz", probe)
    manual_cpu.finish_next()
    assert probe.count == 0
    manual_cpu.finish_next()
    manual_cpu.finish_next()
    assert (work.count, probe.count) == (2, 1)


def test_work_varies_within_its_spread_and_by_the_seed_alone(manual_cpu: Any) -> None:
    def works(seed: int) -> list[float]:
        app = WebApp(AppSpec(work_ms=100, work_spread=0.2, workers=50), manual_cpu, "pod", seed)
        manual_cpu.jobs.clear()
        for _ in range(20):
            app.accept("/", Answers())
        return [work for work, _ in manual_cpu.jobs.values()]

    first = works(1)
    assert all(0.08 <= work <= 0.12 for work in first)
    assert len(set(first)) == 20
    assert first == works(1)
    assert first != works(2)


def test_probes_cost_what_the_spec_says(manual_cpu: Any) -> None:
    WebApp(SPEC, manual_cpu, "pod", seed=1).accept("/readyz?full=1", Answers())
    assert [work for work, _ in manual_cpu.jobs.values()] == [pytest.approx(0.002)]


def test_a_client_that_left_frees_the_line_but_not_the_worker(manual_cpu: Any) -> None:
    app, gone, kept = WebApp(SPEC, manual_cpu, "pod", seed=1), Answers(), Answers()
    running, _, waiting = (app.accept("/", gone) for _ in range(3))
    assert running is not None
    assert waiting is not None
    app.abandon(running)
    app.abandon(waiting)
    assert app.accept("/", kept) is not None
    assert len(manual_cpu.jobs) == 2
    for _ in range(3):
        manual_cpu.finish_next()
    assert (gone.count, kept.count) == (1, 1)


def test_memory_follows_the_requests_in_it(manual_cpu: Any) -> None:
    app = WebApp(AppSpec(memory_mib=10, memory_per_request_mib=2), manual_cpu, "pod", seed=1)
    before = app.memory_bytes
    app.accept("/", Answers())
    assert (before, app.memory_bytes) == (10 * 2**20, 12 * 2**20)


def test_idle_is_told_after_the_last_answer(manual_cpu: Any) -> None:
    app, idle, answers = WebApp(SPEC, manual_cpu, "pod", seed=1), Answers(), Answers()
    for _ in range(3):
        app.accept("/", answers)
    app.when_idle(idle)
    for expected in (0, 0, 1):
        manual_cpu.finish_next()
        assert idle.count == expected
    assert answers.count == 3


def test_a_killed_app_answers_nobody(manual_cpu: Any) -> None:
    app, answers = WebApp(SPEC, manual_cpu, "pod", seed=1), Answers()
    for _ in range(3):
        app.accept("/", answers)
    app.kill()
    assert manual_cpu.jobs == {}
    assert (app.active, answers.count) == (0, 0)
