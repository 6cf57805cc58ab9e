"""The web app of the lab: workers, a backlog, and work that goes through the node's CPU.

The liveness and readiness endpoints are served by the same workers and backlog as everything else, as in most real
web servers: an app that drowns in requests answers its probes late or not at all, which is the signal we live on.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Protocol

from loadtests.workloads.app_spec import AppSpec

Respond = Callable[[], None]
PROBE_PATHS = ("/healthz", "/readyz")
_MIB = 1024 * 1024


class Cpu(Protocol):
    def submit(self, pod: str, work: float, done: Callable[[], None]) -> int: ...

    def cancel(self, job: int) -> None: ...


class Request:
    """One accepted request; `respond` is called when its work is done, unless the client has left."""

    __slots__ = ("job", "respond", "work")

    def __init__(self, work: float, respond: Respond) -> None:
        self.work = work
        self.respond: Respond | None = respond
        self.job: int | None = None


class WebApp:
    def __init__(self, spec: AppSpec, cpu: Cpu, pod: str, seed: int) -> None:
        self._spec = spec
        self._cpu = cpu
        self._pod = pod
        self._random = random.Random(seed)
        self._running: set[Request] = set()
        self._waiting: deque[Request] = deque()
        self._boot: int | None = None
        self._when_idle: Callable[[], None] | None = None

    @property
    def active(self) -> int:
        return len(self._running) + len(self._waiting)

    @property
    def memory_bytes(self) -> int:
        return int((self._spec.memory_mib + self.active * self._spec.memory_per_request_mib) * _MIB)

    def boot(self, ready: Callable[[], None]) -> None:
        """The start-up work; the app must not be asked anything before `ready`."""
        self._boot = self._cpu.submit(self._pod, max(self._spec.startup_ms, 0.001) / 1000, ready)

    def accept(self, path: str, respond: Respond) -> Request | None:
        """None when workers and backlog are full: the caller closes the connection."""
        request = Request(self._work(path), respond)
        if len(self._running) < self._spec.workers:
            self._run(request)
        elif len(self._waiting) < self._spec.backlog:
            self._waiting.append(request)
        else:
            return None
        return request

    def abandon(self, request: Request) -> None:
        """The client has disconnected: a waiting request is dropped, a running one still uses CPU, as threads do."""
        request.respond = None
        if request.job is None and request in self._waiting:
            self._waiting.remove(request)

    def when_idle(self, callback: Callable[[], None]) -> None:
        self._when_idle = callback
        self._tell_if_idle()

    def kill(self) -> None:
        for request in self._running:
            if request.job is not None:
                self._cpu.cancel(request.job)
        if self._boot is not None:
            self._cpu.cancel(self._boot)
        self._running.clear()
        self._waiting.clear()
        self._when_idle = None

    def _work(self, path: str) -> float:
        if path.startswith(PROBE_PATHS):
            return self._spec.probe_work_ms / 1000
        spread = self._spec.work_spread
        return self._spec.work_ms / 1000 * self._random.uniform(1 - spread, 1 + spread)

    def _run(self, request: Request) -> None:
        self._running.add(request)
        request.job = self._cpu.submit(self._pod, request.work, lambda: self._finished(request))

    def _finished(self, request: Request) -> None:
        if request not in self._running:
            return
        self._running.remove(request)
        if request.respond is not None:
            request.respond()
        if self._waiting and len(self._running) < self._spec.workers:
            self._run(self._waiting.popleft())
        self._tell_if_idle()

    def _tell_if_idle(self) -> None:
        if self._when_idle is not None and not self.active:
            callback, self._when_idle = self._when_idle, None
            callback()
