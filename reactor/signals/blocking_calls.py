"""Blocking HTTP calls outside the event loop: few at a time, each with a deadline, none that delays the exit.

A timeout per read never ends a slow trickle, so a call that is given up has its sockets shut down.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.retry import Retry

T = TypeVar("T")


class Exhausted(Exception):
    """All threads are busy with calls that did not end."""


class _Call(Generic[T]):
    def __init__(self, work: Callable[[], T], done: Callable[[], None]) -> None:
        self._work = work
        self._done = done
        self._loop = asyncio.get_running_loop()
        self.result: asyncio.Future[T] = self._loop.create_future()

    def run(self) -> None:
        try:
            value = self._work()
        except Exception as error:  # noqa: BLE001 - the caller gets it
            self._report(partial(self.result.set_exception, error))
        else:
            self._report(partial(self.result.set_result, value))

    def _report(self, set_outcome: Callable[[], None]) -> None:
        def on_loop() -> None:
            self._done()
            if not self.result.done():
                set_outcome()

        # After the deadline nobody waits for the call, and the loop may be closed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(on_loop)


class BoundedThreads:
    """Not concurrent.futures: it joins its threads at exit, so a hanging server would delay the exit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._slots = asyncio.Semaphore(limit)
        self._busy = 0

    @property
    def busy(self) -> int:
        return self._busy

    async def run(self, work: Callable[[], T], abort: Callable[[], None], deadline: float) -> T:
        """Raises TimeoutError after `deadline` seconds, having called `abort`, which should make `work` end."""
        async with self._slots:
            if self._busy >= self._limit:
                raise Exhausted
            call = _Call(work, self._end)
            self._busy += 1
            threading.Thread(target=call.run, name="rematch-metrics", daemon=True).start()
            try:
                async with asyncio.timeout(deadline):
                    return await call.result
            finally:
                if not call.result.done() or call.result.cancelled():
                    abort()

    def _end(self) -> None:
        self._busy -= 1


class CallSockets:
    """The sockets of one call; shutting them down ends it."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._is_shut = False

    def add(self, opened: socket.socket | None) -> None:
        if opened is not None:
            self._sockets.append(opened)
            if self._is_shut:
                self.shut_down()

    def shut_down(self) -> None:
        self._is_shut = True
        for opened in self._sockets:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)


class SocketTrackingAdapter(HTTPAdapter):
    """No retries; registers the socket of every connection that it opens."""

    def __init__(self, sockets: CallSockets) -> None:
        self._sockets = sockets
        super().__init__(max_retries=Retry(total=0, read=False))

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, **kwargs)
        sockets = self._sockets

        class Plain(HTTPConnection):
            def connect(self) -> None:
                super().connect()
                sockets.add(self.sock)

        class Secure(HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                sockets.add(self.sock)

        plain = type("PlainPool", (HTTPConnectionPool,), {"ConnectionCls": Plain})
        secure = type("SecurePool", (HTTPSConnectionPool,), {"ConnectionCls": Secure})
        self.poolmanager.pool_classes_by_scheme = {"http": plain, "https": secure}
