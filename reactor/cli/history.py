"""`rematch history`: what happened, from a running controller or its store, and stored plans and problems."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import click
import msgspec
from msgspec import Struct

from matching.serialization import plan_from_json
from reactor.cli.client import fetch
from reactor.cli.evidence_output import evidence_of_all
from reactor.cli.output import table, to_json
from reactor.cli.plan_output import ShownPlan, render
from reactor.clock import rfc3339
from reactor.errors import InputError
from reactor.record.calibration_summary import CalibrationSummary, summarize
from reactor.record.history_reader import HistoryEntry, HistoryReader
from reactor.record.move_checks import MoveChecks
from reactor.record.stored_problem import decompress
from reactor.record.unhappy_pods import UNHAPPY, UnhappyPod
from reactor.state.calibration import Calibration
from reactor.web.view import CalibrationView, Decisions
from storage.place import Place
from storage.rows import PlanRow, ProblemRow
from storage.store import Store

T = TypeVar("T")

PAGE = 200


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    store: Place | None
    limit: int
    waits: bool
    plan_id: str | None
    problem_id: str | None
    output: str
    server: str


class HistoryRow(Struct, frozen=True):
    """An entry as the command prints it."""

    at: float
    kind: str
    pod: str
    reason: str
    text: str
    plan: str = ""
    unhappy: tuple[UnhappyPod, ...] = ()
    """Of a plan: whom it is for, with the evidence."""


def show_history(request: HistoryRequest) -> str:
    if request.plan_id is not None and request.problem_id is not None:
        raise click.UsageError("--plan and --problem exclude each other; use one of them")
    if request.plan_id is not None:
        return _stored_plan(_store(request), request.plan_id, request.output)
    if request.problem_id is not None:
        return _stored_problem(_store(request), request.problem_id)
    rows = history_rows(request)
    if request.output == "json":
        return msgspec.json.encode(rows).decode()
    learned = calibration_summary(request)
    return render_history(rows) + (f"\n\n{learned}" if learned.probes else "")


def _store(request: HistoryRequest) -> Place:
    if request.store is None:
        raise click.UsageError("--plan and --problem need the store of the controller; add --store FILE")
    return request.store


def history_rows(request: HistoryRequest) -> list[HistoryRow]:
    limit, waits = request.limit, request.waits
    entries: Iterable[HistoryEntry]
    if request.store is None:
        try:
            entries = _from_server(request.server, limit, waits=waits)
        except InputError as error:
            raise InputError(f"{error}; --store FILE reads the store of one that has ended") from error
    else:
        entries = _read(request.store, lambda store: HistoryReader(store).entries(limit, waits=waits))
    return [
        HistoryRow(entry.at, entry.kind, entry.pod or "", entry.reason, entry.text, entry.plan or "", entry.unhappy)
        for entry in entries
    ]


def calibration_summary(request: HistoryRequest) -> CalibrationSummary:
    if request.store is not None:
        return _read(request.store, _stored_calibration)
    answer = fetch(request.server, "calibration", CalibrationView)
    return CalibrationSummary() if answer is None else answer.summary


async def _stored_calibration(store: Store) -> CalibrationSummary:
    rows = await store.load_bins()
    calibration, checks = Calibration(), MoveChecks()
    calibration.restore(rows, max((row.at for row in rows), default=0.0))
    checks.restore(await store.move_checks())
    return summarize(calibration.predicted_failures(), checks.summary())


def render_history(rows: list[HistoryRow]) -> str:
    if not rows:
        return "nothing has happened yet"
    shown = [(rfc3339(row.at), row.kind, row.pod, row.reason, row.plan, row.text) for row in rows]
    return table(("time", "kind", "pod", "reason", "plan", "text"), shown)


def _from_server(server: str, limit: int, *, waits: bool) -> Iterable[HistoryEntry]:
    """Page by page: the controller sends at most one page at once."""
    found: list[HistoryEntry] = []
    more = True
    while more and len(found) < limit:
        query = {"limit": str(min(limit - len(found), PAGE)), "waits": "true" if waits else "false"}
        before = {"before": str(found[-1].id)} if found else {}
        answer = fetch(server, "decisions", Decisions, **query, **before)
        if answer is None:
            raise InputError(f"{server} is no Rematch controller: it has no /api/v1/decisions")
        found += answer.decisions
        more = bool(answer.decisions)
    return found


def _stored_plan(path: Place, plan_id: str, output: str) -> str:
    row: PlanRow | None = _read(path, lambda store: store.plan(plan_id))
    if row is None:
        raise InputError(f"{path}: there is no plan {plan_id}; `rematch history --store {path}` lists plans")
    document = msgspec.json.decode(row.document)
    unhappy = msgspec.convert(document.pop(UNHAPPY, ()), tuple[UnhappyPod, ...])
    if output == "json":
        return to_json(document)
    header = f"plan {row.id} of {rfc3339(row.at)} (mode {row.mode}): {row.text}"
    shown = render(ShownPlan(plan_from_json(document), document.get("staying")), output)
    return "\n\n".join(filter(None, (header, shown, evidence_of_all(unhappy))))


def _stored_problem(path: Place, plan_id: str) -> str:
    row: ProblemRow | None = _read(path, lambda store: store.problem(plan_id))
    if row is None:
        raise InputError(
            f"{path}: no problem is stored for plan {plan_id}; `rematch history --store {path}` lists plans"
        )
    if row.document is None:
        raise InputError(f"{path}: the problem of plan {plan_id} is {row.note}")
    return decompress(row).decode()


def _read(path: Place, read: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
    async def open_and_read() -> T:
        async with await Store.open(path, read_only=True) as store:
            return await read(store)

    return asyncio.run(open_and_read())
