"""LATENCY's tests beside the runs of its experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadtests.evidence.claims import Claim, Finding, Source, Where, judged

_FILE = "experiment-latency/summary.json"
_COMMAND = "rematch lab experiment latency"
_TESTS = {
    "test 1": "targets on nodes 6 and 8, probe on 7: both reach the best nodes, 1 and 2",
    "test 2": "targets on nodes 2 and 6, probe on 5: both reach nodes 1 and 2",
    "test 3": "targets on nodes 4 and 8, probe on 6: both reach nodes 1 and 2",
}
_PLANNER = ", latency, "
"""In the names of the runs that the planner has moved, rather than left where kube-scheduler put them."""


def _best(case: str) -> Callable[[Any], Finding | None]:
    """Runs without trouble."""

    def find(summary: Any) -> Finding | None:
        runs = _runs(summary, f"{case}{_PLANNER}")
        if not runs:
            return None
        best = sum(run["optimal"] for run in runs)
        most = max((each[0] for run in runs for each in run["rounds"]), default=0)
        text = f"the best placement in {best} of {len(runs)} runs; at most {most} iterations in a round"
        why = "" if best == len(runs) else "some runs did not reach it: see the report"
        return Finding(text, judged(best == len(runs)), Where.CONTROL_PLANE, why)

    return find


def _followed(summary: Any) -> Finding | None:
    runs = _runs(summary, "test 3, 2 targets" + _PLANNER)
    if not runs:
        return None
    seconds = [run["followedAfterSeconds"] for run in runs if run["followedAfterSeconds"] is not None]
    text = f"followed in {len(seconds)} of {len(runs)} runs, after {max(seconds, default=0.0):.0f} s at most"
    why = "" if len(seconds) == len(runs) else "some runs did not follow: see the report"
    return Finding(text, judged(len(seconds) == len(runs)), Where.CONTROL_PLANE, why)


def _interruptions(summary: Any) -> Finding | None:
    runs = [run for run in summary["runs"] if _PLANNER in run["run"]]
    if not runs:
        return None
    failed, requests = (sum(run[name] for run in runs) for name in ("failed", "requests"))
    why = "" if not failed else "requests failed: see the report"
    return Finding(f"{failed} of {requests} requests failed", judged(not failed), Where.CONTROL_PLANE, why)


def _runs(summary: Any, beginning: str) -> list[Any]:
    return [run for run in summary["runs"] if run["run"].startswith(beginning)]


SOURCE = Source(
    "LATENCY",
    "latency-aware scheduler for the edge (Ziosi 2024)",
    "experiment-latency.md",
    (
        *(
            Claim(f"{name.capitalize()}: {targets} targets", paper if targets == 2 else "its manifest has 3 targets, "
                  "its tests place 2", _FILE, _COMMAND, _best(f"{name}, {targets} targets"))
            for name, paper in _TESTS.items()
            for targets in (2, 3)
        ),
        Claim("Test 3: the change", "when node 8 gets fast the targets go to 1 and 8", _FILE, _COMMAND, _followed),
        Claim("Interruptions", "none in any test", _FILE, _COMMAND, _interruptions),
    ),
)  # fmt: skip
