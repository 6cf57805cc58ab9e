"""The part of the report that is about requests on real nodes."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import plotly.graph_objects as go

from loadtests.experiments.bnip.live.design import (
    CAREFUL,
    CONNECTIONS,
    LINKS,
    LOAD_SECONDS,
    LOADS,
    MANY,
    PAPER_USERS,
    PLACED_BY,
    PLAIN,
    REPLICAS,
    TIMEOUT,
    UPDATE_SECONDS,
    USERS_SCALE,
    Change,
    PaperLoad,
)
from loadtests.experiments.bnip.live.records import UpdateRun, UsersRun
from loadtests.paired_statistics import Interval, paired_interval
from loadtests.report_page import Answer, ReportPage, Table

UPDATES_CSV, USERS_CSV = "updates.csv", "users.csv"
LIVE_ANSWERS = (
    Answer(
        "Tables 8 and 9", "updates and moves under load", "rates as far as these nodes carry them; Vegeta, not Fortio"
    ),
    Answer("Figs 16 to 19", "many concurrent users", f"a {USERS_SCALE}th of the users on smaller nodes and links"),
)
_NOT_RUN = "Not run: it needs real nodes (--live, as root)."
_UPDATES = (
    f"Three real nodes of 500 millicores, {REPLICAS} replicas, Vegeta with at most {CONNECTIONS} connections at a time"
    f" through kube-proxy for {UPDATE_SECONDS:g} s: kept ones (Vegeta sends a request again by itself when its pod has"
    " closed the connection), or a new one for each request. After 5 s every pod is replaced once, by a rolling update"
    " of the default strategy or by a move to another node. A request is lost when it has no good answer, whatever the"
    " reason. The controller runs in all cases.",
    f"Plain pods: {PLAIN.ending}. With its ingredients: {CAREFUL.ending}.",
    "The paper: 0.17 % lost by default, 0 % with its ingredients.",
)
_USERS = (
    "Three real nodes with a tenth of the CPU and memory of the paper's and a fifth of their bandwidth"
    f" ({' / '.join(f'{mbit:g}' for mbit in LINKS.values())} Mbit/s out of each node, by the kernel's token bucket)."
    " The nine pods are placed one after the other by the real kube-scheduler, alone and with the extender, which is"
    " told the nominal figures. Their answers are as long as their demands say.",
    f"Vegeta with so many requests at a time, to the pods in turn, for {LOAD_SECONDS:g} s (the paper: 30 s). A request"
    f" that fails counts with its timeout of {TIMEOUT:g} s in the mean.",
)


@dataclass(frozen=True, slots=True)
class Live:
    updates: Sequence[UpdateRun]
    users: Sequence[UsersRun]

    def add_to(self, page: ReportPage) -> None:
        page.heading("Updates and moves under load, on real nodes (Tables 8 and 9)")
        page.text(*(_UPDATES if self.updates else (_NOT_RUN,)))
        if self.updates:
            page.table(self._update_table())
            problems = [f"{run.change} at {run.rate:g}/s: {each}" for run in self.updates for each in run.problems]
            page.text(*problems)
        page.heading("Many concurrent users, on real nodes (Figs 16 to 19)")
        page.text(*(_USERS if self.users else (_NOT_RUN,)))
        if self.users:
            page.table(self._users_table())
            page.figure(self._figure("mean request time, ms", lambda run: run.mean_ms))
            page.figure(self._figure("failed, %", lambda run: 100 * run.failed_share))

    def write_csv(self, folder: Path) -> None:
        _write(folder / UPDATES_CSV, UpdateRun, self.updates)
        _write(folder / USERS_CSV, UsersRun, self.users)

    def summary(self) -> Mapping[str, object]:
        return {"updates": self._update_summary(), "concurrency": self._users_summary()}

    def _of(self, change: Change, load: PaperLoad) -> list[UpdateRun]:
        kind = (change, load.rate, load.connections)
        return [run for run in self.updates if (run.change, run.paper_rate, run.connections) == kind]

    def _update_table(self) -> Table:
        rows = []
        for change in Change:
            for load in LOADS:
                runs = self._of(change, load)
                if runs:
                    rows.append((change.value, f"{runs[0].rate:g} ({load.rate}), {load.connections}", *_figures(runs)))
        head = (
            "what",
            "requests/s (the paper's), connections",
            "runs",
            "requests",
            "lost",
            "lost %",
            "how",
            "change took, s",
            "in time",
        )
        return Table(head, rows)

    def _update_summary(self) -> Mapping[str, object]:
        arms = {}
        for change in Change:
            runs = [run for run in self.updates if run.change == change]
            requests, lost = sum(run.requests for run in runs), sum(run.lost for run in runs)
            if runs:
                share = {"requests": requests, "lost": lost, "lostPercent": 100 * lost / requests}
                loads = sorted({f"{run.rate:g}/s, {run.connections} connections" for run in runs})
                arms[change.value] = {"runs": len(runs), "loads": loads, **share}
        why = f"{REPLICAS} replicas, {CONNECTIONS} connections, {UPDATE_SECONDS:g} s; rates that the nodes carry"
        return {"arms": arms, "why": why}

    def _users_table(self) -> Table:
        rows = []
        for users in PAPER_USERS:
            for arm in PLACED_BY:
                runs = [run for run in self.users if (run.arm, run.paper_users) == (arm.name, users)]
                if runs:
                    figures = (
                        f"{fmean(run.requests for run in runs):.0f}",
                        f"{fmean(run.mean_ms for run in runs):.1f}",
                        f"{fmean(run.p95_ms for run in runs):.0f}",
                        f"{100 * fmean(run.failed_share for run in runs):.2f}",
                    )
                    rows.append((f"{users // USERS_SCALE} ({users})", arm.name, str(len(runs)), *figures))
        return Table(("users (the paper's)", "placed by", "runs", "requests", "mean ms", "p95 ms", "failed %"), rows)

    def _users_summary(self) -> Mapping[str, object]:
        why = f"5 to 500 users instead of 100 to 10,000, {LOAD_SECONDS:g} s; nodes and links scaled; " + (
            "failures above a scaled 2,000, of which the share is compared"
        )
        return {
            "why": why,
            "requestTime": _interval(self._changes(PAPER_USERS, lambda run: run.mean_ms)),
            "failures": _interval(
                self._changes([each for each in PAPER_USERS if each > MANY], lambda run: run.failed_share)
            ),
        }

    def _changes(self, levels: Sequence[int], value: Callable[[UsersRun], float]) -> list[float]:
        """By repeat: with the extender against without, in percent, the mean over the numbers of users."""
        runs = {run.key: run for run in self.users}
        changes = []
        for repeat in sorted({run.repeat for run in self.users}):
            pairs = [
                tuple(runs.get((arm.name, repeat, level)) for arm in PLACED_BY) for level in levels
            ]  # fmt: skip
            found = [
                100 * (value(other) / value(default) - 1)
                for default, other in pairs
                if default is not None and other is not None and value(default)
            ]
            if found:
                changes.append(fmean(found))
        return changes

    def _figure(self, title: str, value: Callable[[UsersRun], float]) -> go.Figure:
        figure = go.Figure()
        for arm in PLACED_BY:
            levels = sorted({run.users for run in self.users if run.arm == arm.name})
            means = [
                fmean(value(run) for run in self.users if (run.arm, run.users) == (arm.name, each)) for each in levels
            ]
            figure.add_scatter(x=levels, y=means, name=arm.name, mode="lines+markers")
        figure.update_layout(height=360, xaxis={"type": "log", "title": "users"}, yaxis_title=title, margin={"t": 20})
        return figure


def _figures(runs: Sequence[UpdateRun]) -> tuple[str, ...]:
    requests, lost = sum(run.requests for run in runs), sum(run.lost for run in runs)
    outcomes = {name: sum(run.failed.get(name, 0) for run in runs) for run in runs for name in run.failed}
    strategies = {name: sum(run.strategies.get(name, 0) for run in runs) for run in runs for name in run.strategies}
    how = ", ".join(f"{name} {number}" for name, number in (*strategies.items(), *outcomes.items()))
    took = f"{min(run.seconds for run in runs):.0f} to {max(run.seconds for run in runs):.0f}"
    in_time = f"{sum(run.in_time for run in runs)} of {len(runs)}"
    return (str(len(runs)), str(requests), str(lost), f"{100 * lost / requests:.3f}", how, took, in_time)


def _interval(changes: list[float]) -> Mapping[str, float | None] | None:
    """Of one repeat there is a mean, and no interval."""
    if not changes:
        return None
    found: Interval | None = paired_interval(changes) if len(changes) > 1 else None
    low, high = (None, None) if found is None else (found.low, found.high)
    return {"mean": fmean(changes), "low": low, "high": high, "repeats": len(changes)}


def _write(path: Path, kind: type[UpdateRun] | type[UsersRun], runs: Sequence[UpdateRun | UsersRun]) -> None:
    names = kind.__struct_fields__
    with path.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(names)
        table.writerows([_cell(getattr(run, name)) for name in names] for run in runs)


def _cell(value: object) -> object:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={each}" for name, each in value.items())
    return "; ".join(value) if isinstance(value, list) else value
