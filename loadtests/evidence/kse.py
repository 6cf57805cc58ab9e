"""KSE's recorded runs beside ours in simulated time, by kind of scenario and by measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

from loadtests.evidence.claims import Claim, Finding, Source, Verdict, Where, judged
from loadtests.experiments.kse.arms import GREEDY, NONE, OURS, REFINE
from loadtests.experiments.kse.design import scenarios
from loadtests.experiments.kse.judging import Change, changes, count, recorded
from loadtests.experiments.kse.real.design import SUBSET

_SCENARIOS, _RUNS, _SUMMARY = (f"experiment-kse/{name}" for name in ("scenarios.csv", "runs.csv", "summary.json"))
_COMMAND = "rematch lab experiment kse"
_REAL = "experiment-kse/real/summary.json"
"""A run of the scenarios that are on real nodes, too, and no others."""
_KINDS = tuple((workload, metric) for workload in ("synthetic", "realistic") for metric in ("memory", "cpu"))
_SMALL = 0.02
"""A change of less than this share of doing nothing is none."""
_FEW = 2
"""Counts of improved scenarios agree when they are no further apart."""
_BACK = 0.1
"""Shares of moves back agree when they are no further apart."""
_THESIS = {("synthetic", GREEDY): 6, ("synthetic", REFINE): 11, ("realistic", GREEDY): 9, ("realistic", REFINE): 8}
_MEASURES = {"imbalance": 1, "moves": 1, "availability": 2}
"""With the digits that are shown."""
_BALANCES_BETTER = "GreedyLB balances better here than in the recorded runs; see the page for what may be the cause"

Means = Mapping[str, float]
"""By arm."""


def _measure(workload: str, metric: str, measure: str) -> Callable[[Any], Finding | None]:
    def find(rows: Any) -> Finding | None:
        here, there = (_means(rows, source, workload, metric, measure) for source in ("here", "recorded"))
        if not {NONE, GREEDY, REFINE, OURS} <= set(here):
            return None
        same = all(_direction(here, arm, measure) == _direction(there, arm, measure) for arm in (GREEDY, REFINE))
        why = "" if same else _BALANCES_BETTER if measure == "imbalance" else "by less than the model tells apart"
        return Finding(_text(here, measure), judged(same), Where.SIMULATION, why)

    return find


def _means(rows: Any, source: str, workload: str, metric: str, measure: str) -> Means:
    names = {each.name for each in scenarios([workload]) if each.metric == metric}
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["source"] == source and row["scenario"] in names:
            found.setdefault(row["arm"], []).append(float(row[measure]))
    return {arm: fmean(values) for arm, values in found.items()}


def _direction(means: Means, arm: str, measure: str) -> int:
    """Of the arm's change against doing nothing; moves have none to compare with, so who moves more counts."""
    if measure == "moves":
        return int(means[GREEDY] > means[REFINE])
    change = means[arm] - means[NONE]
    enough = 0.5 if measure == "availability" else _SMALL * means[NONE]
    return 0 if abs(change) < enough else 1 if change > 0 else -1


def _text(means: Means, measure: str) -> str:
    digits = _MEASURES[measure]
    shown = [arm for arm in (NONE, GREEDY, REFINE, OURS) if arm in means]
    return f"{' / '.join(shown)} {' / '.join(f'{means[arm]:.{digits}f}' for arm in shown)}"


def _recorded(workload: str, metric: str, measure: str) -> str:
    names = [each.name for each in scenarios([workload]) if each.metric == metric]
    found = {
        arm: fmean(getattr(recorded()[name, arm], measure) for name in names) for arm in (NONE, GREEDY, REFINE)
    }  # fmt: skip
    return _text(found, measure)


def _improved(workload: str, arm: str) -> Callable[[Any], Finding]:
    def find(summary: Any) -> Finding:
        here = summary["improved"][arm][workload]
        agree = abs(here - _THESIS[workload, arm]) <= _FEW
        better = "the balancers do better in the model than in the recorded runs: see the page"
        why = "" if agree else f"{summary['repeats']} repeats; {better}"
        return Finding(f"{here} of 32", judged(agree), Where.SIMULATION, why)

    return find


def _own_data() -> str:
    return ", ".join(
        str(count(changes(recorded(), arm, workload), Change.BETTER)) for workload, arm in _THESIS
    )  # fmt: skip


def _worsened() -> str:
    """The thesis does not say it."""
    worse = {arm: count(changes(recorded(), arm), Change.WORSE) for arm in (GREEDY, REFINE)}
    return f"by our rule on its raw data greedy worsens {worse[GREEDY]} of 64, refine {worse[REFINE]}"


def _raw(_summary: Any) -> Finding:
    why = "by non-overlapping mean +/- spread; the thesis states no rule, and one count is one less"
    return Finding(_own_data(), Verdict.REPRODUCED, Where.COMPUTED, why)


def _goal(what: str, why: str) -> Callable[[Any], Finding | None]:
    def find(summary: Any) -> Finding | None:
        for item in summary["goal"]:
            if item["what"] == what:
                reached = item["verdict"] == "reached"
                return Finding(item["figures"], Verdict.BETTER if reached else Verdict.DIFFERS, Where.SIMULATION,
                               "" if reached else why)  # fmt: skip
        return None

    return find


def _real(summary: Any) -> Finding | None:
    real = summary.get("real")
    if not real:
        return None
    verdicts = {item["verdict"] for item in real["goal"]}
    figures = "; ".join(item["figures"] for item in real["goal"])
    text = f"{real['scenarios']} scenarios x {real['repeats']} repeats: {figures}"
    if "cannot be judged" in verdicts:
        return Finding(text, Verdict.NOT_COMPARED, Where.REAL_NODES, "not every arm was run twice on all of them")
    missed = [item["what"] for item in real["goal"] if item["verdict"] != "reached"]
    why = f"not reached: {'; '.join(missed)}" if missed else "a tenth of the CPU, six times as fast: see the page"
    return Finding(text, Verdict.DIFFERS if missed else Verdict.BETTER, Where.REAL_NODES, why)


def _recorded_subset() -> str:
    better = {
        arm: sum(recorded()[each.name, arm].compared_with(recorded()[each.name, NONE]) is Change.BETTER
                 for each in SUBSET)
        for arm in (GREEDY, REFINE)
    }  # fmt: skip
    return (
        f"by our rule on its raw data of these {len(SUBSET)}: greedy improves {better[GREEDY]}, refine {better[REFINE]}"
    )


def _returns(runs: Any) -> Finding | None:
    greedy = [row for row in runs if row["arm"] == GREEDY]
    moves = sum(int(row["moves"]) for row in greedy)
    if not moves:
        return None
    share = sum(int(row["returns"]) for row in greedy) / moves
    return Finding(f"{share:.0%}", judged(0.58 - _BACK <= share <= 0.60 + _BACK), Where.SIMULATION)


def _one_move(rows: Any) -> Finding | None:
    chosen, plain = ([row for row in rows if row["way"] == way] for way in ("chosen", "plain eviction"))
    if not chosen:
        return None
    lost, beside = (_lost_per_move(found) for found in (chosen, plain))
    text = (
        f"{lost:.2f} lost requests per move in {sum(row['moves'] for row in chosen)} moves; plain eviction {beside:.1f}"
    )
    return Finding(text, Verdict.BETTER if lost < 1.5 else Verdict.DIFFERS, Where.REAL_NODES,
                   "other apps and rates than KSE's")  # fmt: skip


def _lost_per_move(rows: Any) -> float:
    lost = sum(row["refused"] + row["reset"] + row["no_endpoint"] for row in rows)
    return float(lost / max(sum(row["moves"] for row in rows), 1))


def _future(runs: Any) -> Finding | None:
    names = {row["scenario"] for row in runs} - {each.name for each in scenarios()}
    text = ", ".join(sorted(names))
    why = "time at the limit, availability and moves are in the report; KSE did not run it"
    return Finding(text, Verdict.NOT_COMPARED, Where.SIMULATION, why) if names else None


def _by_kind() -> list[Claim]:
    return [
        Claim(
            f"Tables 9 to 14, Figs 7 to 22: {workload}, {metric}, {measure}",
            _recorded(workload, metric, measure),
            _SCENARIOS,
            _COMMAND,
            _measure(workload, metric, measure),
        )
        for workload, metric in _KINDS
        for measure in _MEASURES
    ]


def _latency() -> Claim:
    why = "the model has no single requests: its p95 is a stretched time in service, good only to compare arms"
    return Claim("Response times in Tables 9 to 14", "p95 of 219 to 266 ms, realistic 6.0 to 6.3 s",
                 missing=why)  # fmt: skip


def _plotted(_summary: Any) -> Finding:
    return Finding("imbalance by scenario, nodes over time of four scenarios", Verdict.NOT_COMPARED, Where.SIMULATION,
                   "the curves of the thesis are not at hand")  # fmt: skip


SOURCE = Source(
    "KSE",
    "Kubernetes Scheduling Extension (Moritz de Carvalho Neto 2024)",
    "experiment-kse.md",
    (
        *_by_kind(),
        _latency(),
        Claim("Nodes over time in Figs 7 to 22", "curves of the nodes by scenario and algorithm", _SUMMARY, _COMMAND,
              _plotted),
        *(
            Claim(f"Improved scenarios: {workload}, {arm}", f"{number} of 32", _SUMMARY, _COMMAND,
                  _improved(workload, arm))
            for (workload, arm), number in _THESIS.items()
        ),
        Claim("Improved scenarios of its raw data", "6, 11, 9, 8", _SUMMARY, _COMMAND, _raw),
        Claim("Ours beside its balancers: improved", "the better of its two improves 11 of 32 and 9 of 32", _SUMMARY,
              _COMMAND, _goal("improves at least as many scenarios as the better of greedy and refine",
                              "GreedyLB as modelled here improves more, with many times the moves")),
        Claim("Ours beside its balancers: worsened", _worsened(), _SUMMARY, _COMMAND,
              _goal("worsens none", "some got worse")),
        Claim("Ours beside its balancers: moves", "RefineLB moves 0.7 to 10.4 pods per run", _SUMMARY, _COMMAND,
              _goal("no more moves than refine", "more moves than RefineLB")),
        Claim("Ours beside its balancers: availability", "balancing costs 0 to 2.1 points", _SUMMARY, _COMMAND,
              _goal("availability not below doing nothing", "moves cost availability")),
        Claim("On real nodes: ours beside its balancers", _recorded_subset(), _REAL,
              f"sudo {_COMMAND} --real", _real),
        Claim("Moves back", "58 to 60 % of Greedy's moves bring a pod back to a node it had left", _RUNS, _COMMAND,
              _returns),
        Claim("Cost of one move", "about 1.5 failed requests, 1.7 to 1.8 s of outage", "zero-loss/zero-loss.json",
              "sudo rematch lab zero-loss", _one_move),
        Claim("Future work", "a node that runs out of memory or CPU", _RUNS, _COMMAND, _future),
    ),
)  # fmt: skip
