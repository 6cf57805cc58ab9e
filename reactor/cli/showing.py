"""Tables for `rematch status` and `rematch history`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec import Struct

from reactor.cli.client import ask
from reactor.cli.tables import table
from reactor.clock import rfc3339
from reactor.errors import InputError, format_errors
from reactor.web.view import DecisionView, Gauge, Overview
from storage.rows import DecisionRow, MoveRow, RevisionRow
from storage.store import Store

MOST_READ = 100_000
PAGE = 200


class Happening(Struct, frozen=True):
    at: float
    kind: str
    pod: str
    reason: str
    text: str


class _Decisions(Struct):
    decisions: tuple[DecisionView, ...]


def render_status(overview: Overview) -> str:
    unhappy = [(pod.key, node.name, pod) for node in overview.nodes for pod in node.pods if not pod.happy]
    lines = [
        f"mode {overview.mode}, planner {overview.planner}, threshold {overview.threshold:g};"
        f" {_totals(overview)},"
        f" rematches: {overview.rematches}, moves: {overview.moves}",
    ]
    if not overview.synced:
        lines.append("not synced yet: nothing is decided")
    if overview.halted:
        lines.append(f"HALTED: {overview.halted}")
    lines += [f"problem: {problem}" for problem in overview.problems]
    lines += [f"settings refused: {refusal.path}: {refusal.message}" for refusal in overview.settings.refused]
    nodes = [
        (node.name, _share(node.cpu), _share(node.memory), len(node.pods), "Ready" if node.ready else "NotReady")
        for node in overview.nodes
    ]
    parts = ["\n".join(lines), table(("node", "cpu", "memory", "pods", "status"), nodes)]
    if unhappy:
        rows = [(key, node, f"{pod.happiness or 0:.2f}", f"{pod.threshold:g}", pod.fixed) for key, node, pod in unhappy]
        parts.append(table(("unhappy", "node", "happiness", "threshold", "fixed"), rows))
    return "\n\n".join(parts)


def _totals(overview: Overview) -> str:
    totals = overview.totals
    if totals is None:
        return f"{len(overview.nodes)} nodes"
    return f"{totals.nodes} nodes, {totals.pods} pods, {totals.unhappy} unhappy, {totals.pending} pending"


def history_from_server(server: str, limit: int, *, waits: bool) -> list[Happening]:
    """Page by page, since the controller does not answer with more than a page at once."""
    found: list[DecisionView] = []
    more = True
    while more and len(found) < limit:
        query = {"limit": str(min(limit - len(found), PAGE)), "waits": "true" if waits else "false"}
        before = {"before": str(found[-1].id)} if found else {}
        answer = ask(server, "decisions", _Decisions, **query, **before)
        if answer is None:
            raise InputError(f"{server} is no Rematch controller: it has no /api/v1/decisions")
        found += answer.decisions
        more = bool(answer.decisions)
    return [Happening(one.at, one.kind, one.pod or "", one.reason, one.text) for one in found]


def history_from_store(store: Path, limit: int, *, waits: bool) -> list[Happening]:
    decisions, moves, revisions = asyncio.run(_read(store, limit, waits=waits))
    rows = [
        Happening(one.at, one.kind, one.pod_key, one.reason, one.text)
        for one in decisions
        if waits or one.kind != "wait"
    ]
    rows += [_moved(move) for move in moves]
    rows += [_offered(revision) for revision in revisions]
    return sorted(rows, key=lambda row: -row.at)[:limit]


async def _read(path: Path, limit: int, *, waits: bool) -> tuple[list[DecisionRow], list[MoveRow], list[RevisionRow]]:
    """Where waits are left out, more is read: there are many of them between two rematches."""
    async with await Store.open(path) as store:
        decisions = await store.decisions(limit if waits else MOST_READ)
        return decisions, await store.moves(limit), await store.revisions(limit)


def _moved(move: MoveRow) -> Happening:
    text = f"{move.from_node} -> {move.to_node}: {move.text or move.state}"
    return Happening(move.ended or move.started, "move", move.pod_key, move.state, text)


def _offered(revision: RevisionRow) -> Happening:
    if revision.accepted:
        return Happening(revision.at, "settings", "", "accepted", f"settings from {revision.source} are in force")
    return Happening(revision.at, "settings", "", "refused", f"{revision.source}: {format_errors(revision.errors)}")


def render_history(rows: list[Happening]) -> str:
    if not rows:
        return "nothing has happened yet"
    shown = [(rfc3339(row.at), row.kind, row.pod, row.reason, row.text) for row in rows]
    return table(("time", "kind", "pod", "reason", "text"), shown)


def _share(gauge: Gauge | None) -> str:
    if gauge is None or gauge.used is None or not gauge.capacity:
        return "<unknown>"
    return f"{gauge.used / gauge.capacity:.0%}"
