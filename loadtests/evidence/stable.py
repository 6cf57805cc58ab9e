"""STABLE's table and findings beside our runs in simulated time and on real nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from loadtests.evidence.claims import Claim, Finding, Source, Verdict, Where, judged
from loadtests.experiments.stable.design import THRESHOLDS
from loadtests.experiments.stable.paper_table import PAPER_TABLE, paper_totals

_FILE, _STEPS, _REAL = (f"experiment-stable/{name}" for name in ("summary.json", "steps.csv", "short/summary.json"))
_COMMAND = "rematch lab experiment stable --no-real"
_ON_NODES = "sudo rematch lab experiment stable --steps short"
_NEAR = 0.5
"""Counts of rematches agree when none is more than half of the paper's away from it."""
_QUIET = 70
"""Up to this rate the paper has no rematch."""
_FULL, _IDLE = 0.9, 0.5
"""Shares of its CPU from which on a node counts as full, and up to which as idle."""
_NOT_LOOKED_INTO = "the cause was not looked into"


def _rematches(summary: Any) -> Finding | None:
    arms = summary.get("simulated", {}).get("arms", {})
    found = {each: arms.get(f"live stable-paper {each:g}") for each in THRESHOLDS}
    if not all(found.values()):
        return None
    ours = {each: (arm["rematchesPerRun"], arm["leftOutPerRun"]) for each, arm in found.items() if arm}
    near = all(
        abs(rematches - paper_totals(each).rematches) <= _NEAR * paper_totals(each).rematches
        for each, (rematches, _) in ours.items()
    )
    text = ", ".join(f"{each:g}: {rematches:.1f} ({left_out:.1f})" for each, (rematches, left_out) in ours.items())
    return Finding(text, judged(near), Where.SIMULATION, "" if near else _NOT_LOOKED_INTO)


def _no_dumping(summary: Any) -> Finding | None:
    arms = summary.get("simulated", {}).get("arms", {})
    found = [arms[name]["leftOutPerRun"] for each in THRESHOLDS if (name := f"live stable {each:g}") in arms]
    if len(found) < len(THRESHOLDS):
        return None
    text = ", ".join(f"{each:g}: {value:.1f}" for each, value in zip(THRESHOLDS, found, strict=True))
    verdict = Verdict.BETTER if not any(found) else Verdict.DIFFERS
    return Finding(f"default planner {text}", verdict, Where.SIMULATION, "our planner never leaves a pod out")


def _first_rematches(steps: Any) -> Finding | None:
    first = {each: _first(steps, each) for each in THRESHOLDS}
    if None in first.values():
        return None
    quiet = all(rate is not None and rate > _QUIET for rate in first.values())
    text = ", ".join(f"{each:g}: {rate}" for each, rate in first.items())
    return Finding(text, judged(quiet), Where.SIMULATION, "the earliest of the seeds")


def _first(steps: Any, threshold: float) -> int | None:
    """The lowest rate with a rematch of the paper's planner, over all seeds."""
    rates = [
        int(row["paper_rate"])
        for row in steps
        if (row["world"], row["phase"], row["planner"]) == ("simulated", "live", "stable-paper")
        and float(row["threshold"]) == threshold
        and int(row["rematches"])
    ]
    return min(rates, default=None)


def _paper_first() -> str:
    first = {
        each: min(rate for rate, row in PAPER_TABLE.items() if row[each].rematches) for each in THRESHOLDS
    }  # fmt: skip
    return ", ".join(f"{each:g}: {rate}" for each, rate in first.items())


def _item(world: str, part: str, what: str, *, if_not: str, if_so: str = "") -> Callable[[Any], Finding | None]:
    """A goal or finding that the experiment has judged itself."""

    def find(summary: Any) -> Finding | None:
        where = Where.REAL_NODES if world == "real" else Where.SIMULATION
        for item in summary.get(world, {}).get(part, ()):
            if item["what"].startswith(what):
                reached = item["verdict"] == "reached"
                return Finding(item["figures"], judged(reached), where, if_so if reached else if_not)
        return None

    return find


def _crowded(summary: Any) -> Finding | None:
    arms = summary.get("simulated", {}).get("arms", {})
    default, ours = (arms.get(name, {}).get("nodeCpuShareAt110") for name in ("kube-scheduler", "live stable 0.9"))
    if not default or not ours:
        return None
    weak, *others = default["node2"], default["node1"], default["node3"]
    reproduced = weak >= _FULL and max(others) <= _IDLE
    text = f"default {_shares(default)}; live, threshold 0.9 {_shares(ours)}"
    why = "at 110, where all nodes together are nearly full: the weak one is the fullest, the others cannot be idle"
    return Finding(text, judged(reproduced), Where.SIMULATION, "" if reproduced else why)


def _worst(summary: Any) -> Finding | None:
    lowest, *others = sorted(THRESHOLDS)
    found = _item("simulated", "findings", f"{_PHASE_B}{lowest:g} below", if_not="not at every rate")(summary)
    arms = summary.get("simulated", {}).get("arms", {})
    means = {each: arms.get(f"frozen stable-paper {each:g}", {}).get("meanAvailability") for each in THRESHOLDS}
    if found is None or None in means.values():
        return found
    least = all(means[lowest] < means[each] for each in others)
    return replace(found, why=f"{found.why}; on average {lowest:g} is {'' if least else 'not '}the lowest")


def _shares(nodes: dict[str, float]) -> str:
    return " / ".join(f"{100 * nodes[name]:.0f} %" for name in sorted(nodes))


def _plotted(_summary: Any) -> Finding:
    why = "plots in the report; the values of the paper's figure are not at hand. In the model memory follows the pods"
    return Finding("CPU and memory of the pods and nodes, default and rematched", Verdict.NOT_COMPARED,
                   Where.SIMULATION, why)  # fmt: skip


_TOO_FEW = "not every interval is above 0"
_BY_MEANS = "by the means; whether by more than chance was not tested"
_SHORT = "short form, from the first failure to 110, our default planner"
_PHASE_B = "stable-paper, phase B: "

SOURCE = Source(
    "STABLE",
    "reschedule controller and matching scheduler (Alimudin, Sudibyo 2023)",
    "experiment.md",
    (
        Claim(
            "Table of rematches: how many",
            "rematches until stable (dumped pods), all rates: "
            + ", ".join(
                f"{each:g}: {paper_totals(each).rematches} ({paper_totals(each).dumped})" for each in THRESHOLDS
            ),
            _FILE,
            _COMMAND,
            _rematches,
        ),
        Claim("Table of rematches: the first", f"at {_paper_first()}; none from 50 to {_QUIET}", _STEPS, _COMMAND,
              _first_rematches),
        Claim("Table of rematches: dumped pods", "0.7: 0, 0.8: 10, 0.9: 10", _FILE, _COMMAND, _no_dumping),
        Claim("Phase B on real nodes", "availability after rematching is above the default's", _REAL, _ON_NODES,
              _item("real", "goal", "availability (phase B)", if_not=_SHORT, if_so=_SHORT)),
        Claim("Phase B: every threshold", "every threshold is above the default scheduler, over all rates", _FILE,
              _COMMAND, _item("simulated", "findings", f"{_PHASE_B}every threshold", if_not=_TOO_FEW)),
        Claim("Phase B: best threshold", "0.9 is best on average", _FILE, _COMMAND,
              _item("simulated", "findings", f"{_PHASE_B}0.9 best", if_not=_BY_MEANS, if_so=_BY_MEANS)),
        Claim("Phase B: worst threshold", "0.7 is below the other two at every rate above 70", _FILE, _COMMAND,
              _worst),
        Claim("Fig. 7", "CPU and memory of the pods", _FILE, _COMMAND, _plotted),
        Claim("Fig. 8: CPU", "the 5-vCPU worker at about 100 %, the other two idle", _FILE, _COMMAND, _crowded),
        Claim("Fig. 8: memory", "memory of the nodes", _FILE, _COMMAND, _plotted),
    ),
)  # fmt: skip
