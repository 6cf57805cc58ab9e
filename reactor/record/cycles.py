"""A short id for every cycle, on every log line and row that the cycle causes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import structlog


@contextmanager
def cycle_context() -> Iterator[str]:
    cycle = secrets.token_hex(4)
    with structlog.contextvars.bound_contextvars(cycle=cycle):
        yield cycle
