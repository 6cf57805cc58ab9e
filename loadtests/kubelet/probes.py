"""HTTP probes with the kubelet's meaning of period, timeout and thresholds, and its messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loadtests.kubelet.pod_spec import ProbeSpec
from loadtests.kubelet.usage import ProbeKind
from loadtests.workloads.http_client import Answer, Ending, http_get
from reactor.clock import Clock


class Thresholds:
    """Turns single results into verdicts: only a run of equal results that is long enough changes anything."""

    def __init__(self, failures: int, successes: int) -> None:
        self._needed = {True: successes, False: failures}
        self._last: bool | None = None
        self._run = 0

    def verdict(self, ok: bool) -> bool | None:
        self._run = self._run + 1 if ok is self._last else 1
        self._last = ok
        return ok if self._run >= self._needed[ok] else None


@dataclass(frozen=True, slots=True)
class ProbeListener:
    """`result` hears every probe with the kubelet's message, `verdict` only what the thresholds let through."""

    result: Callable[[ProbeKind, bool, str], None]
    verdict: Callable[[ProbeKind, bool], None]


class ProbeLoop:
    """Probes one container until cancelled, or until its liveness verdict is failure: then it waits for no more."""

    def __init__(self, kind: ProbeKind, spec: ProbeSpec, host: str, listener: ProbeListener, clock: Clock) -> None:
        self._kind = kind
        self._spec = spec
        self._host = host
        self._listener = listener
        self._clock = clock

    async def run(self, jitter: float) -> None:
        """`jitter` in [0, 1) of a period puts off the first probe, so that probes of many pods do not march in step."""
        thresholds = Thresholds(self._spec.failure_threshold, self._spec.success_threshold)
        await self._clock.sleep(self._spec.initial_delay + jitter * self._spec.period)
        tick = self._clock.monotonic()
        while True:
            answer = await http_get(self._host, self._spec.port, self._spec.path, self._spec.timeout)
            self._listener.result(self._kind, answer.ok, self._message(answer))
            verdict = thresholds.verdict(answer.ok)
            if verdict is not None:
                self._listener.verdict(self._kind, verdict)
                if self._kind is ProbeKind.LIVENESS and not verdict:
                    return
            tick = await self._next_tick(tick)

    async def _next_tick(self, tick: float) -> float:
        """A probe longer than its period is followed by the next at once; further missed ticks are dropped."""
        now, due = self._clock.monotonic(), tick + self._spec.period
        if due > now:
            await self._clock.sleep(due - now)
            return due
        return due + (now - due) // self._spec.period * self._spec.period

    def _message(self, answer: Answer) -> str:
        if answer.ok:
            return ""
        return f"{self._kind.value} probe failed: {_reason(answer, self._host, self._spec)}"


def _reason(answer: Answer, host: str, spec: ProbeSpec) -> str:
    get = f'Get "http://{host}:{spec.port}{spec.path}"'
    match answer.ending:
        case Ending.ANSWERED:
            return f"HTTP probe failed with statuscode: {answer.status}"
        case Ending.TIMEOUT:
            return f"{get}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        case Ending.REFUSED:
            return f"{get}: dial tcp {host}:{spec.port}: connect: connection refused"
        case Ending.CLOSED:
            return f"{get}: EOF"
        case Ending.RESET:
            return f"{get}: read: connection reset by peer"
        case Ending.UNREACHABLE:
            return f"{get}: dial tcp {host}:{spec.port}: connect: no route to host"
