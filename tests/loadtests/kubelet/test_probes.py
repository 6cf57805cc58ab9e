from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from loadtests.kubelet import probes
from loadtests.kubelet.pod_spec import ProbeSpec
from loadtests.kubelet.probes import ProbeListener, ProbeLoop, Thresholds
from loadtests.kubelet.usage import ProbeKind
from loadtests.workloads.http_client import Answer, Ending

OK = Answer(Ending.ANSWERED, 200)
BAD = Answer(Ending.ANSWERED, 500)
SLOW = Answer(Ending.TIMEOUT)


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)


class World:
    """Answers in order, each after its seconds; the loop ends by running out of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: tuple[Answer, float]) -> None:
        self.clock = Clock()
        self.asked: list[float] = []
        self.results: list[tuple[bool, str]] = []
        self.verdicts: list[bool] = []
        self._answers: Iterator[tuple[Answer, float]] = iter(answers)
        monkeypatch.setattr(probes, "http_get", self._get)

    async def _get(self, host: str, port: int, path: str, timeout: float) -> Answer:
        self.asked.append(self.clock.time)
        answer = next(self._answers, None)
        if answer is None:
            raise asyncio.CancelledError
        self.clock.time += answer[1]
        return answer[0]

    async def run(self, spec: ProbeSpec, kind: ProbeKind = ProbeKind.READINESS, jitter: float = 0.0) -> None:
        listener = ProbeListener(
            lambda _, ok, message: self.results.append((ok, message)), lambda _, ok: self.verdicts.append(ok)
        )
        task = asyncio.create_task(ProbeLoop(kind, spec, "127.16.0.1", listener, self.clock).run(jitter))
        await asyncio.gather(task, return_exceptions=True)


def spec(**values: float) -> ProbeSpec:
    return ProbeSpec("/healthz", 8080, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("failures", "successes", "story", "verdicts"),
    [
        (3, 1, "xxx", [None, None, False]),
        (3, 1, "xx.xxx", [None, None, True, None, None, False]),
        (1, 3, "...x..", [None, None, True, False, None, None]),
        (1, 1, "x.x", [False, True, False]),
        (2, 1, "xxxx", [None, False, False, False]),
    ],
)
def test_only_a_run_of_equal_results_counts(
    failures: int, successes: int, story: str, verdicts: list[bool | None]
) -> None:
    thresholds = Thresholds(failures, successes)
    assert [thresholds.verdict(mark == ".") for mark in story] == verdicts


async def test_the_period_is_from_start_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, (OK, 0.5), (OK, 0.0), (OK, 0.9))
    await world.run(spec(period=2.0, initial_delay=3.0), jitter=0.25)
    assert world.asked == [3.5, 5.5, 7.5, 9.5]


async def test_a_probe_longer_than_its_period_is_followed_at_once_and_ticks_are_not_made_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, (SLOW, 2.5), (OK, 0.0), (OK, 0.0))
    await world.run(spec(period=1.0))
    assert world.asked == [0.0, 2.5, 3.0, 4.0]


async def test_liveness_stops_at_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, (OK, 0), (BAD, 0), (SLOW, 1), (BAD, 0), (OK, 0))
    await world.run(spec(failure_threshold=3), ProbeKind.LIVENESS)
    assert len(world.asked) == 4
    assert world.verdicts == [True, False]


async def test_readiness_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, (BAD, 0), (OK, 0), (BAD, 0))
    await world.run(spec(failure_threshold=1))
    assert world.verdicts == [False, True, False]


GET = 'Liveness probe failed: Get "http://127.16.0.1:8080/healthz": '


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (BAD, "Liveness probe failed: HTTP probe failed with statuscode: 500"),
        (SLOW, GET + "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"),
        (Answer(Ending.REFUSED), GET + "dial tcp 127.16.0.1:8080: connect: connection refused"),
        (Answer(Ending.CLOSED), GET + "EOF"),
        (Answer(Ending.RESET), GET + "read: connection reset by peer"),
        (Answer(Ending.ANSWERED, 302), ""),
    ],
)
async def test_failures_are_worded_as_the_kubelet_words_them(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, message: str
) -> None:
    world = World(monkeypatch, (answer, 0))
    await world.run(spec(), ProbeKind.LIVENESS)
    assert world.results == [(answer.ok, message)]
