"""The report of LATENCY's tests: what of the thesis it answers, ours beside it, and what differs."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import plotly.graph_objects as go

from loadtests.experiments.latency.design import STARTS, Arm, Trouble
from loadtests.experiments.latency.findings import Finding, finding, verdicts
from loadtests.experiments.latency.records import RunRecord
from loadtests.report_page import ReportPage, Table
from loadtests.tools.catalogue import program
from reactor.errors import InputError

_ABOUT = (
    "Eight workers are 100, 200, ... 800 ms away from the user, each way; their names say nothing about it. Targets"
    " (the application with an echo server) and one probe (an echo server) start on the workers that the thesis names:"
    " test 1 on 6 and 8 with the probe on 7, test 2 on 2 and 6 with the probe on 5, test 3 on 4 and 8 with the probe on"
    " 6. In test 3, when the best placement is reached, worker 8 comes within 50 ms.",
    "What runs: a real control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler), rematch run and"
    " rematch latency-client as processes with the rights of their own accounts, and a real Mosquitto. The workers are"
    " lab kubelets: a pod is an HTTP server and a UDP echo server on an address of its own, with real probes. The way"
    " to a worker is a relay in user space at the worker's address, since this kernel cannot delay packets: it does"
    " what kube-proxy does for a NodePort with externalTrafficPolicy Local, by the real EndpointSlices.",
    "The user sends requests to the application through the Service, each with a connection of its own, to the workers"
    " with a ready endpoint in turn. The round trip of a request is what the user measures, not the meter.",
)
_DIFFERENT = (
    "The thesis places two targets in its text, and its manifest has three. Both were run; where the third one starts"
    " (worker 5, 7 and 7) is our choice.",
    "The arm latency is our rule, which remembers what was measured in a round. The arm latency-published is the"
    " thesis' rule in the same system. The thesis counts 7 rounds in test 3; its rule needs 5 or 6 iterations per"
    " round in any order of the workers.",
    "A pod counts as measured from its second measurement on, with the lower of the last two. The thesis takes the last"
    " one.",
    "A relay accepts a connection at once, so a request costs one round trip; with a handshake through the delay it"
    " would cost two. With loss, a lost datagram is lost, and what is lost of a connection is sent again after a round"
    " trip, at least 200 ms.",
    "A pod is moved by a surge: the replacement is Ready before the old pod ends. The thesis removes the pod first.",
    "The probe is moved. The thesis deletes it, and its Deployment makes it again elsewhere.",
)
_ANSWERED = (
    ("test 1, RTT over time", "figure of round trips, test 1"),
    ("test 2, RTT over time", "figure of round trips, test 2"),
    ("test 3, RTT over time and the change", "figures of round trips and of workers, test 3"),
    ("iterations and rounds", "table of rounds"),
    ("several clusters", "not answered: the thesis leaves it open, and so do we"),
    ("real requests instead of probes", "rematch latency-client --mode http; not part of these runs"),
)


def write_report(folder: Path, records: Sequence[RunRecord], *, partial: bool) -> Path:
    """index.html, moves.csv, measurements.csv and summary.json; the path of the page."""
    if not records:
        raise InputError(f"{folder}: nothing was measured yet")
    found = [finding(record) for record in sorted(records, key=lambda record: record.case.key)]
    _write_moves(folder / "moves.csv", records)
    _write_measurements(folder / "measurements.csv", records)
    (folder / "summary.json").write_text(json.dumps(_summary(found), indent=1) + "\n", encoding="utf-8")
    page = folder / "index.html"
    page.write_text(_page(found, partial=partial).html(), encoding="utf-8")
    return page


def _page(found: Sequence[Finding], *, partial: bool) -> ReportPage:
    page = ReportPage("LATENCY: targets move to the nearest workers")
    if partial:
        page.text("Partial: the experiment was stopped before its end; this is what was measured until then.")
    page.text(*_ABOUT)
    page.heading("Goals")
    rows = [(each.goal, each.measured, each.reached) for each in verdicts(found)]
    page.table(Table(("goal", "measured", "verdict"), rows))
    page.heading("By test and arm")
    page.table(Table(("test", "targets", "trouble", "arm", "runs", *_COLUMNS), _rows(found)))
    page.heading("Round trip of the user's requests, first seed, two targets")
    first = min(each.record.seed for each in found)
    for test in STARTS:
        page.figure(_round_trips([each.record for each in found if each.record.seed == first], test))
    page.heading("Workers of the targets and the probe, first seed, two targets")
    for test in STARTS:
        page.figure(_placements([each.record for each in found if each.record.seed == first], test))
    page.heading("Rounds of every run")
    page.table(Table(("run", "rounds: iterations, target moves, probe moves", "best after, s", "failed"), _all(found)))
    page.heading("What of the thesis this answers")
    page.table(Table(("thesis", "here"), _ANSWERED))
    page.heading("What differs, and why")
    page.text(*_DIFFERENT)
    page.heading("How it was run")
    page.facts(_facts(found))
    return page


_COLUMNS = (
    "best placement",
    "iterations of the first round",
    "target moves",
    "probe moves",
    "to a farther worker",
    "best after, s",
    "change followed after, s",
    "requests failed",
    "round trip first, ms",
    "last, ms",
)


def _rows(found: Sequence[Finding]) -> list[tuple[str, ...]]:
    keys = {(each.record.test, each.record.targets, each.record.trouble, each.record.arm) for each in found}
    rows = []
    for key in sorted(keys):
        runs = [e for e in found if (e.record.test, e.record.targets, e.record.trouble, e.record.arm) == key]
        test, targets, trouble, arm = key
        name = "free" if arm is Arm.SCHEDULER else str(test)
        rows.append((name, str(targets), trouble, arm, str(len(runs)), *_row(runs)))
    return rows


def _row(runs: Sequence[Finding]) -> tuple[str, ...]:
    moves = runs[0].record.arm.moves
    requests = sum(len(each.record.requests) for each in runs)
    return (
        f"{sum(each.optimal for each in runs)} of {len(runs)}" if moves else "",
        _range(each.first_round.iterations for each in runs) if moves else "",
        _range(each.first_round.target_moves for each in runs) if moves else "",
        _range(each.first_round.probe_moves for each in runs) if moves else "",
        str(sum(each.worse for each in runs)) if moves else "",
        _mean([each.best_at for each in runs]) if moves else "",
        _mean([each.followed_after for each in runs]),
        f"{sum(each.failed for each in runs)} of {requests}",
        _mean([each.rtt_first for each in runs], 1000),
        _mean([each.rtt_last for each in runs], 1000),
    )


def _range(values: Iterable[int]) -> str:
    found = sorted(set(values))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _mean(values: Sequence[float | None], factor: float = 1.0) -> str:
    known = [value for value in values if value is not None]
    return f"{factor * fmean(known):.0f}" if known else ""


def _all(found: Sequence[Finding]) -> list[tuple[str, ...]]:
    return [
        (
            str(each.record.case),
            "; ".join(f"{one.iterations}, {one.target_moves}, {one.probe_moves}" for one in each.rounds),
            "" if each.best_at is None else f"{each.best_at:.0f}",
            str(each.failed),
        )
        for each in found
        if each.record.arm.moves
    ]


def _shown(records: Sequence[RunRecord], test: int) -> list[RunRecord]:
    return [
        record
        for record in records
        if record.targets == 2
        and record.trouble is Trouble.NONE
        and (record.test == test or record.arm is Arm.SCHEDULER)
    ]


def _round_trips(records: Sequence[RunRecord], test: int) -> go.Figure:
    figure = go.Figure()
    for record in _shown(records, test):
        ok = sorted((each for each in record.requests if each.ending == "ok"), key=lambda each: each.at)
        smooth = [fmean(each.seconds for each in ok[max(0, at - 3) : at + 1]) for at in range(len(ok))]
        figure.add_scatter(
            x=[each.at for each in ok], y=[round(1000 * each) for each in smooth], name=record.arm.value, mode="lines"
        )
        if record.changed_at is not None and record.arm is Arm.REMATCH:
            figure.add_vline(x=record.changed_at, line_dash="dot")
    return _laid_out(figure, f"test {test}: round trip (mean of 4 requests)", "ms")


def _placements(records: Sequence[RunRecord], test: int) -> go.Figure:
    figure = go.Figure()
    for record in _shown(records, test):
        if record.arm is not Arm.REMATCH:
            continue
        places = [(each.at, each.targets) for each in record.placements if len(each.targets) == record.targets]
        places.append((record.seconds, places[-1][1]))
        for number in range(record.targets):
            x, y = [at for at, _ in places], [targets[number] for _, targets in places]
            figure.add_scatter(x=x, y=y, name=f"target {number + 1}, by distance", line={"shape": "hv"})
        probes = [(each.at, each.probes[0]) for each in record.placements if len(each.probes) == 1]
        probes.append((record.seconds, probes[-1][1]))
        x, y = [at for at, _ in probes], [rank for _, rank in probes]
        figure.add_scatter(x=x, y=y, name="probe", line={"shape": "hv", "dash": "dot"})
    return _laid_out(figure, f"test {test}: placement", "worker")


def _laid_out(figure: go.Figure, title: str, unit: str) -> go.Figure:
    legend = {"orientation": "h", "y": -0.2}
    return figure.update_layout(height=340, title=title, yaxis_title=unit, xaxis_title="seconds", legend=legend)


def _write_moves(path: Path, records: Sequence[RunRecord]) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow((*_CASE, "plan", "role", "from_rank", "to_rank", "started", "ended", "outcome"))
        for record in records:
            for each in sorted(record.moves, key=lambda move: move.started):
                move = (each.plan, each.role, each.source, each.target, each.started, each.ended, each.outcome)
                table.writerow((*_case(record), *move))


def _write_measurements(path: Path, records: Sequence[RunRecord]) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow((*_CASE, "at", "role", "rank", "rtt_seconds", "loss"))
        for record in records:
            for each in record.measurements:
                table.writerow((*_case(record), each.at, each.role, each.rank, each.rtt, each.loss))


_CASE = ("arm", "test", "targets", "trouble", "seed")


def _case(record: RunRecord) -> tuple[object, ...]:
    return (record.arm.value, record.test, record.targets, record.trouble.value, record.seed)


def _summary(found: Sequence[Finding]) -> Mapping[str, object]:
    return {
        **_facts(found),
        "goals": [{"goal": each.goal, "measured": each.measured, "verdict": each.reached} for each in verdicts(found)],
        "runs": [
            {
                "run": str(each.record.case),
                "optimal": each.optimal,
                "rounds": [[one.iterations, one.target_moves, one.probe_moves] for one in each.rounds],
                "toFartherWorker": each.worse,
                "bestAfterSeconds": each.best_at,
                "followedAfterSeconds": each.followed_after,
                "requests": len(each.record.requests),
                "failed": each.failed,
                "movedInSilence": each.moved_in_silence,
                "problems": each.record.problems,
                "finished": each.record.finished,
            }
            for each in found
        ],
    }


def _facts(found: Sequence[Finding]) -> dict[str, object]:
    return {
        "world": "real control plane, lab kubelets whose pods serve, delays in user space",
        "kube-apiserver": program("kube-apiserver").version,
        "pace (1: delays and waiting times of the thesis)": sorted({each.record.pace for each in found}),
        "seeds": sorted({each.record.seed for each in found}),
        "first run": min(each.record.began for each in found),
        "last run": max(each.record.began for each in found),
        "cores of the machine": os.cpu_count(),
    }
