"""What goes wrong in the loops and background tasks: counted, logged once, shown, and tried again after a pause."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from reactor.clock import Clock
from reactor.record.metrics import Instruments

log = structlog.get_logger(__name__)

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
LOG_AGAIN_AFTER = 300.0
"""The same error is logged once in so many seconds. In between it is only counted."""
REMEMBERED_ERRORS = 100
_NOTE = "stage: "


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Errors inside of it are reported as errors of this stage."""
    try:
        yield
    except Exception as error:
        error.add_note(f"{_NOTE}{name}")
        raise


@dataclass(slots=True)
class _Logged:
    at: float
    unlogged: int = 0


@dataclass(slots=True)
class Failures:
    """By stage. `current` has the last error of every stage that has not succeeded since."""

    clock: Clock
    instruments: Instruments
    current: dict[str, str] = field(default_factory=dict)
    _in_a_row: dict[str, int] = field(default_factory=dict)
    _logged: OrderedDict[tuple[str, str], _Logged] = field(default_factory=OrderedDict)

    def report(self, task: str, error: Exception) -> float:
        """Returns the seconds to wait before the next attempt, which grow with every failure of the task in a row."""
        where = _stage_of(error) or task
        text = _text(error)
        self.instruments.failures.labels(where).inc()
        self.current[task] = text
        count = self._in_a_row[task] = self._in_a_row.get(task, 0) + 1
        pause = min(FIRST_PAUSE * 2.0 ** min(count - 1, 10), LONGEST_PAUSE)
        self._log(where, text, error, pause)
        return pause

    def succeeded(self, task: str) -> None:
        if self.current.pop(task, None) is not None:
            log.info("works again", task=task)
        self._in_a_row.pop(task, None)

    async def keep_running(self, task: str, work: Callable[[], Awaitable[None]]) -> None:
        """Until `work` returns. An error is reported, and the work begins again."""
        while True:
            try:
                return await work()
            except Exception as error:  # noqa: BLE001 - it is reported
                await self.clock.sleep(self.report(task, error))

    def _log(self, where: str, text: str, error: Exception, pause: float) -> None:
        now, key = self.clock.monotonic(), (where, text)
        logged = self._logged.get(key)
        if logged is not None and now - logged.at < LOG_AGAIN_AFTER:
            logged.unlogged += 1
            return
        repeated = 0 if logged is None else logged.unlogged
        log.error("failed", stage=where, error=text, repeated=repeated, again_in=pause, exc_info=error)
        self._logged[key] = _Logged(now)
        self._logged.move_to_end(key)
        if len(self._logged) > REMEMBERED_ERRORS:
            self._logged.popitem(last=False)


def problems(current: Mapping[str, str]) -> Iterator[str]:
    for task, text in current.items():
        yield f"{task} failed and is tried again: {text}"


def _stage_of(error: Exception) -> str:
    """The innermost one."""
    notes = getattr(error, "__notes__", [])
    return next((note.removeprefix(_NOTE) for note in notes if note.startswith(_NOTE)), "")


def _text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(_text(inner) for inner in error.exceptions))
    return f"{type(error).__name__}: {error}"[:500]
