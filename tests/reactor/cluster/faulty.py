"""A connection without a network: the truth, seen through faults. Fast enough for thousands of random histories."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from reactor.cluster.api import ApiRequest, ApiResponse, Query, error_of, status_of
from reactor.errors import Unreachable
from tests.reactor.cluster.misbehaving import Fault
from tests.reactor.cluster.truth import Truth, status_json

_CODES = {Fault.EXPIRED: 410, Fault.BROKEN: 500, Fault.UNAVAILABLE: 503, Fault.THROTTLED: 429}


@dataclass
class FaultyConnection:
    """`answers`, where given, are spent before the truth is asked."""

    truth: Truth
    page_size: int | None = None
    answers: list[ApiResponse | Exception] = field(default_factory=list)
    page_expiries: list[bool] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    calls: list[ApiRequest] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)

    async def close(self) -> None:
        pass

    async def send(self, call: ApiRequest) -> ApiResponse:
        self.calls.append(call)
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        fault = self.faults.popleft() if self.faults else None
        if fault in (Fault.RESET, Fault.SILENT):
            raise Unreachable(f"GET {call.path}: {fault.name}")
        query = call.query or {}
        if fault is Fault.EXPIRED or ("continue" in query and self.page_expiries and self.page_expiries.pop()):
            return ApiResponse(410, status_json(410, "expired"))
        if fault in (Fault.BROKEN, Fault.UNAVAILABLE):
            return ApiResponse(503, b"")
        if fault is Fault.THROTTLED:
            return ApiResponse(429, b"", 7.0)
        page = self.truth.page(int(query.get("continue", "0")), self.page_size or int(query["limit"]))
        return ApiResponse(200, page[:-5] if fault is Fault.CUT_BODY else page)

    @asynccontextmanager
    async def stream(self, path: str, query: Query, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        self.queries.append(query)
        fault = self.faults.popleft() if self.faults else None
        code = _CODES.get(fault, 0) if fault else 0
        version = int(query["resourceVersion"])
        if version < self.truth.compacted:
            code = 410
        if code:
            raise error_of(status_of(ApiResponse(code, status_json(code, "as ordered"))), f"GET {path}")
        if fault in (Fault.RESET, Fault.SILENT):
            raise Unreachable(f"GET {path}: {fault.name}")
        yield self._lines(version, fault)

    async def _lines(self, version: int, fault: Fault | None) -> AsyncIterator[bytes]:
        """The fault strikes in the middle of what there is to tell; without one the watch waits for more."""
        if fault is Fault.CLOSED_AT_ONCE:
            return
        backlog = self.truth.lines_after(version)
        strikes = len(backlog) // 2 if fault is not None else len(backlog)
        for number, line in backlog[:strikes]:
            version = number
            yield line
        if fault is not None:
            for line in _misdeed(fault):
                yield line
            return
        while True:
            moved = self.truth.moved
            for number, line in self.truth.lines_after(version):
                version = number
                yield line
            await moved.wait()
            if self.faults:
                for line in _misdeed(self.faults.popleft()):
                    yield line
                return


def _misdeed(fault: Fault) -> list[bytes]:
    lines = {
        Fault.EXPIRED_IN_STREAM: {"type": "ERROR", "object": {"code": 410, "message": "too old"}},
        Fault.ERROR_IN_STREAM: {"type": "ERROR", "object": {"code": 500, "message": "etcd"}},
        Fault.MALFORMED_OBJECT: {"type": "ADDED", "object": {"metadata": {"name": "odd"}, "spec": 7}},
    }
    if fault in lines:
        return [msgspec.json.encode(lines[fault])]
    if fault is Fault.GARBAGE_LINE:
        return [b"<html>"]
    raise Unreachable(f"as ordered: {fault.name}")
