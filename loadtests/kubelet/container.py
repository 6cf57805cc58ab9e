"""One run of a pod's app, and the back-off before it is restarted."""

from __future__ import annotations

import asyncio
import logging

from loadtests.kubelet.pod_spec import LabPod
from loadtests.workloads.http_server import AppServer
from loadtests.workloads.live_cpu import LiveCpu
from loadtests.workloads.webapp import WebApp
from reactor.clock import Clock
from reactor.meter.echo import EchoServer

_log = logging.getLogger(__name__)
_LISTEN_AGAIN = 0.5


_FIRST = 10.0
_LONGEST = 300.0
_FORGET = 2 * _LONGEST


class Container:
    def __init__(self, pod: LabPod, host: str, cpu: LiveCpu, clock: Clock, seed: int) -> None:
        self._pod = pod
        self._host = host
        self._clock = clock
        self._app = WebApp(pod.app, cpu, pod.identity.uid, seed)
        self._server = AppServer(self._app)
        self._echo: asyncio.DatagramTransport | None = None

    @property
    def memory_bytes(self) -> int:
        return self._app.memory_bytes

    async def serve(self) -> None:
        """Listens once the start-up work is done; then there is nothing more to wait for."""
        booted = asyncio.Event()
        self._app.boot(booted.set)
        await booted.wait()
        await self._serve_echo()
        while True:
            try:
                return await self._server.listen(self._host, self._pod.container.port)
            except OSError as error:
                _log.warning("%s cannot listen yet: %s", self._host, error)
                await self._clock.sleep(_LISTEN_AGAIN)

    async def _serve_echo(self) -> None:
        if port := self._pod.app.echo_port:
            loop = asyncio.get_running_loop()
            self._echo, _ = await loop.create_datagram_endpoint(
                lambda: EchoServer(self._clock), local_addr=(self._host, port)
            )

    async def stop(self, grace: float) -> bool:
        """Takes requests a little longer, answers what it has; False when grace was over first and it was killed."""
        idle = asyncio.Event()
        try:
            async with asyncio.timeout(grace):
                await self._clock.sleep(min(self._pod.app.drain_ms / 1000, grace))
                self._server.stop_accepting()
                self._app.when_idle(idle.set)
                await idle.wait()
        except TimeoutError:
            return False
        else:
            return True
        finally:
            self.kill()

    def kill(self) -> None:
        self._server.abort()
        self._app.kill()
        if self._echo is not None:
            self._echo.close()
            self._echo = None


class RestartBackoff:
    """`scale` shortens all of it, for labs that have minutes instead of hours."""

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._delay = 0.0
        self._last: float | None = None

    def next_delay(self, now: float) -> float:
        if self._last is not None and now - self._last > _FORGET * self._scale:
            self._delay = 0.0
        delay = self._delay
        self._delay = min(max(_FIRST, delay * 2), _LONGEST)
        self._last = now
        return delay * self._scale
