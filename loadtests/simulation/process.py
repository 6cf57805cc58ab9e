"""What a process of simulations keeps from run to run: an event loop, and a store that nothing reads."""

from __future__ import annotations

import asyncio
import atexit
import signal
import tempfile
from collections.abc import Callable, Coroutine
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from reactor.record.logs import configure_logs
from storage.limits import Limits
from storage.store import Store

T = TypeVar("T")
_NEVER = 24 * 3600.0


def prepare_process() -> None:
    """Ctrl-C is for the process that collects the results."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    configure_logs(level="critical", json=True)


def run_simulation(work: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
    return _kept().run(work)


class _Kept:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._loop = asyncio.Runner()
        path = Path(self._folder.name) / "rows.db"
        self._store = self._loop.run(Store.open(path, Limits(flush_seconds=_NEVER)))

    def run(self, work: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
        return self._loop.run(work(self._store))

    def close(self) -> None:
        self._loop.run(self._store.close())
        self._loop.close()
        self._folder.cleanup()


@cache
def _kept() -> _Kept:
    kept = _Kept()
    atexit.register(kept.close)
    return kept
