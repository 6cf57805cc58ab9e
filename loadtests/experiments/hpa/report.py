"""The report: replicas over time, maxima and failed requests of the arms, beside the paper's."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import plotly.graph_objects as go
from msgspec import Struct

from loadtests.experiments.hpa.design import (
    ARMS,
    LEAST,
    LIMIT,
    MOST,
    NODES,
    PAPER,
    PREDICTED,
    PROMETHEUS,
    STABILIZATION,
    TARGET,
    TOP,
    WORK_MS,
    at_second,
    needed,
)
from loadtests.paired_statistics import paired_interval
from loadtests.report_page import ReportPage, Table
from loadtests.tools.catalogue import program
from reactor.errors import InputError

_SECONDS = (15, 30, 45, 60, 75, 90, 120, 180, 240)
THIRD = "from the third burst on"
_Records = Sequence["BurstRecord"]
_GROUPS: Mapping[str, Callable[[_Records], _Records]] = {
    "first": lambda records: [each for each in records if each.number == 1],
    "second": lambda records: [each for each in records if each.number == 2],
    THIRD: lambda records: [each for each in records if each.number > 2],
}
_MARGIN = 0.05
"""Of the requests of a burst: less is chance, with arms that do the same."""
_PROGRAMS = ("kube-apiserver", "kubelet", "etcd", "k6")
_ABOUT = (
    "The load jumps to its top and falls evenly to nothing, again and again. Three Deployments get the same requests at"
    " the same time from k6, through kube-proxy, and each has a real HorizontalPodAutoscaler that aims at the same CPU"
    " per replica: metrics-api reads metrics.k8s.io; prometheus-fed reads what Prometheus measures, by"
    " external.metrics.k8s.io; predicted reads this and what Rematch predicts for the next minute, and the larger one"
    " counts. kube-controller-manager asks every 15 s, as by default.",
    "A session is one life of the cluster and of the controller: what is learned of the load goes with it. Its first"
    " burst is new. So is what announces the second one, a load that has fallen to nothing: those from the third on"
    " can be foreseen.",
)
_DIFFERENT = (
    "The paper has 24 replicas at most by Prometheus and 21 by default; here 12 are needed at the top, scaled to the"
    " nodes. The arms share nodes that are not full; the machine has two cores for everything.",
    "The kubelets look at containers every 2 s, Prometheus scrapes every 2 s (rates over 10 s), metrics.k8s.io is"
    " renewed every 15 s as metrics-server's is. The paper does not give its intervals.",
    f"Autoscalers follow a lower need after {STABILIZATION} s, not after 300 s: else the replicas of one burst would"
    " still be there for the next.",
    "prometheus-fed reads Prometheus through Rematch's server of external metrics instead of prometheus-adapter: a"
    " cluster has one server for this group.",
)


class ArmRecord(Struct, frozen=True, rename="camel"):
    requests: int
    failed: list[float]
    """When they were sent, in seconds of the burst."""
    p95: float | None
    times: list[float]
    """When the replicas were looked at, in seconds of the burst."""
    wanted: list[int]
    ready: list[int]


class BurstRecord(Struct, frozen=True, rename="camel"):
    session: int
    number: int
    """Within its session; the first one is new to the controller."""
    seconds: float
    due: float
    """Requests to each arm."""
    at: str
    arms: Mapping[str, ArmRecord]


def write_report(folder: Path, records: Sequence[BurstRecord], *, partial: bool) -> Path:
    """index.html, replicas.csv, bursts.csv and summary.json; the path of the page."""
    if not records:
        raise InputError(f"{folder}: nothing was measured yet")
    _write_replicas(folder / "replicas.csv", records)
    _write_bursts(folder / "bursts.csv", records)
    (folder / "summary.json").write_text(json.dumps(summary(records), indent=1) + "\n", encoding="utf-8")
    page = folder / "index.html"
    page.write_text(_page(records, partial=partial).html(), encoding="utf-8")
    return page


def judgements(records: Sequence[BurstRecord]) -> list[tuple[str, str, str]]:
    """What is asked of the predicted arm, what was found, and a verdict. Predicted less Prometheus-fed, burst by burst;
    below 0 is better."""
    first = _GROUPS["first"](records)
    judged = [_not_worse(f"first bursts: share of failed requests not higher by {_MARGIN:.0%}", _failed_more(first))]
    later = [each for each in records if each.number > 1]
    for name, group in (("later bursts", later), (THIRD, _GROUPS[THIRD](records))):
        judged.append(_better(f"{name}: share of failed requests is lower", _failed_more(group)))
        judged.append(_better(f"{name}: enough replicas earlier, in seconds", _later_by(group)))
    return judged


def _not_worse(asked: str, differences: Sequence[float]) -> tuple[str, str, str]:
    if not differences:
        return asked, "no such burst", "cannot be judged"
    worse = fmean(differences) > _MARGIN or (len(differences) > 1 and paired_interval(list(differences)).low > 0)
    return asked, _found(differences), "not reached" if worse else "reached"


def _better(asked: str, differences: Sequence[float]) -> tuple[str, str, str]:
    if len(differences) < 2:
        return asked, _found(differences) if differences else "no such burst", "cannot be judged"
    better = paired_interval(list(differences)).high < 0
    return asked, _found(differences), "reached" if better else "not reached"


def _found(differences: Sequence[float]) -> str:
    mean = f"{fmean(differences):+.3g} on average of {len(differences)}"
    if len(differences) < 2:
        return mean
    interval = paired_interval(list(differences))
    return f"{mean}, 95 % interval {interval.low:+.3g} to {interval.high:+.3g}"


def _failed_more(records: Sequence[BurstRecord]) -> list[float]:
    return [_failed_share(each.arms[PREDICTED.name]) - _failed_share(each.arms[PROMETHEUS.name]) for each in records]


def _failed_share(arm: ArmRecord) -> float:
    return len(arm.failed) / arm.requests if arm.requests else 0.0


def _later_by(records: Sequence[BurstRecord]) -> list[float]:
    both = [(enough_at(each, PREDICTED.name), enough_at(each, PROMETHEUS.name)) for each in records]
    return [mine - theirs for mine, theirs in both]


def enough_at(record: BurstRecord, arm: str) -> float:
    """The second from which as many replicas are Ready as the load of that second needs; the end if never."""
    found = record.arms[arm]
    for at, ready in zip(found.times, found.ready, strict=True):
        if at >= 0 and ready >= round(needed(at, record.seconds)):
            return at
    return record.seconds


def summary(records: Sequence[BurstRecord]) -> dict[str, object]:
    return {
        **_facts(records),
        "paper": PAPER,
        "judgements": [dict(zip(("asked", "found", "verdict"), each, strict=True)) for each in judgements(records)],
        "arms": {arm.name: _figures(records, arm.name) for arm in ARMS},
    }


def _figures(records: Sequence[BurstRecord], arm: str) -> dict[str, object]:
    groups = {name: chosen(records) for name, chosen in _GROUPS.items()}
    return {name: _of_group(group, arm) for name, group in groups.items() if group}


def _of_group(records: Sequence[BurstRecord], arm: str) -> dict[str, object]:
    own = [each.arms[arm] for each in records]
    return {
        "bursts": len(own),
        "maximum": [max(each.ready, default=0) for each in own],
        "requests": sum(each.requests for each in own),
        "failed": [len(each.failed) for each in own],
        "enoughAtSecond": [round(enough_at(each, arm), 1) for each in records],
        "meanReadyAtSecond": {str(second): _mean_ready(own, second) for second in _SECONDS},
    }


def _mean_ready(own: Sequence[ArmRecord], second: float) -> float | None:
    known = [ready for each in own if (ready := at_second(each.times, each.ready, second)) is not None]
    return round(fmean(known), 2) if known else None


def _page(records: Sequence[BurstRecord], *, partial: bool) -> ReportPage:
    page = ReportPage("BNIP's autoscaling test: metrics.k8s.io, Prometheus, predicted")
    if partial:
        page.text("Partial: the experiment was stopped before its end; this is what was measured until then.")
    page.text(*_ABOUT)
    page.heading("Asked and found")
    page.text("Predicted less Prometheus-fed, burst by burst; below 0 is better.")
    page.table(Table(("asked", "found", "verdict"), judgements(records)))
    page.heading("Replicas over time (Figs 12 and 13)")
    page.text("Ready replicas, mean over the bursts; dotted: what the load needs.")
    for name, chosen in _GROUPS.items():
        if group := chosen(records):
            page.figure(_replicas_figure(records, name, group))
    page.table(_steps(records))
    page.heading("Failed requests")
    page.figure(_failed_figure(records))
    page.table(_bursts(records))
    page.heading("What differs, and why")
    page.text(*_DIFFERENT)
    page.heading("How it was run")
    page.facts(_facts(records))
    return page


def _replicas_figure(records: Sequence[BurstRecord], title: str, group: Sequence[BurstRecord]) -> go.Figure:
    figure = go.Figure()
    seconds = range(0, int(records[0].seconds) + 1, 2)
    for arm in ARMS:
        means = [_mean_ready([each.arms[arm.name] for each in group], second) for second in seconds]
        figure.add_scatter(x=list(seconds), y=means, name=arm.title, mode="lines")
    load = [needed(second, records[0].seconds) for second in seconds]
    figure.add_scatter(x=list(seconds), y=load, name="needed", mode="lines", line={"dash": "dot"})
    layout = {"height": 380, "title": title, "xaxis_title": "second of the burst", "yaxis_title": "Ready replicas"}
    figure.update_layout(**layout, legend={"orientation": "h", "y": -0.2})
    return figure


def _failed_figure(records: Sequence[BurstRecord]) -> go.Figure:
    figure = go.Figure()
    names = [f"{each.session}.{each.number}" for each in records]
    for arm in ARMS:
        failed = [len(each.arms[arm.name].failed) for each in records]
        figure.add_bar(x=names, y=failed, name=arm.title)
    layout = {"height": 340, "xaxis_title": "session and burst", "yaxis_title": "failed requests"}
    figure.update_layout(**layout, xaxis_type="category", legend={"orientation": "h", "y": -0.3})
    return figure


def _steps(records: Sequence[BurstRecord]) -> Table:
    rows: list[tuple[str, ...]] = [("paper, default (of 21)", "", "", "", "8", "12", "", "21", "", "")]
    for arm in ARMS:
        for name, chosen in _GROUPS.items():
            own = [each.arms[arm.name] for each in chosen(records)]
            if own:
                means = (_mean_ready(own, second) for second in _SECONDS)
                rows.append((f"{arm.title}, {name}", *(f"{mean:.1f}" if mean is not None else "" for mean in means)))
    return Table(("mean Ready replicas at second", *map(str, _SECONDS)), rows)


def _bursts(records: Sequence[BurstRecord]) -> Table:
    rows = []
    for each in records:
        for arm in ARMS:
            own = each.arms[arm.name]
            p95 = "" if own.p95 is None else f"{own.p95 * 1000:.0f}"
            failed = f"{len(own.failed)} ({_failed_share(own):.1%})"
            most, enough = str(max(own.ready, default=0)), f"{enough_at(each, arm.name):.0f}"
            rows.append((f"{each.session}.{each.number}", arm.title, most, enough, str(own.requests), failed, p95))
    headers = ("burst", "arm", "most Ready", "enough at second", "requests", "failed", "p95, ms (failed: 2000)")
    return Table(headers, rows)


def _write_replicas(path: Path, records: Sequence[BurstRecord]) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(("session", "burst", "arm", "second", "wanted", "ready"))
        for each in records:
            for name, own in each.arms.items():
                for at, wanted, ready in zip(own.times, own.wanted, own.ready, strict=True):
                    table.writerow((each.session, each.number, name, at, wanted, ready))


def _write_bursts(path: Path, records: Sequence[BurstRecord]) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(
            ("session", "burst", "arm", "due", "requests", "failed", "p95_seconds", "most_ready", "enough_at")
        )
        for each in records:
            for name, own in each.arms.items():
                most, enough = max(own.ready, default=0), f"{enough_at(each, name):.1f}"
                row = (each.session, each.number, name, f"{each.due:.0f}", own.requests, len(own.failed))
                table.writerow((*row, "" if own.p95 is None else f"{own.p95:.4f}", most, enough))


def _facts(records: Sequence[BurstRecord]) -> dict[str, object]:
    return {
        "world": "real control plane, kubelets, containerd, kube-proxy, Prometheus and HorizontalPodAutoscaler",
        "bursts": len(records),
        "sessions": len({each.session for each in records}),
        "seconds of a burst": records[0].seconds,
        "top, requests per second and arm": TOP,
        "CPU per request, ms": WORK_MS,
        "replica": f"target {TARGET}m, limit {LIMIT}m, {LEAST} to {MOST}",
        "nodes": {node.name: f"{node.millicores}m" for node in NODES},
        "versions": {name: program(name).version for name in _PROGRAMS},
        "first burst": min(each.at for each in records),
        "last burst": max(each.at for each in records),
        "cores of the machine": os.cpu_count(),
    }
