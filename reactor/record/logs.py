"""Structured logs: JSON lines for machines, coloured lines for a terminal. Each line of a cycle carries its id."""

from __future__ import annotations

import logging
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import structlog
from structlog.tracebacks import ExceptionDictTransformer

_TRACEBACKS = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
"""Local variables may hold tokens and whole clusters. They are not logged."""


def configure_logs(*, level: str = "info", json: bool | None = None, stream: TextIO | None = None) -> None:
    """Log to standard error unless `stream` says otherwise."""
    stream = stream or sys.stderr
    as_json = not stream.isatty() if json is None else json
    renderer: structlog.types.Processor = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(pad_event_to=32)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _TRACEBACKS if as_json else structlog.processors.ExceptionPrettyPrinter(),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )


@contextmanager
def cycle_context(known: str | None = None) -> Iterator[str]:
    """The id of a cycle, by default a new one, on every log line inside of the context."""
    cycle = known or secrets.token_hex(4)
    with structlog.contextvars.bound_contextvars(cycle=cycle):
        yield cycle
