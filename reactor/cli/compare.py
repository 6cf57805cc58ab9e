"""`rematch plan --compare`: all planners on the same problem."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matching.plan import Plan, PowerUse
from matching.problem import TOLERANCE, Problem, ProblemError
from matching.registry import known_planners
from reactor.cli.output import table, to_json, to_yaml
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.decide import Trigger, decide
from reactor.decision.eligibility import Eligibility
from reactor.planning.problems import rematch_problem
from reactor.planning.rate_axes import rate_axes
from reactor.settings.model import Planner, Settings
from reactor.settings.planner import make_planner
from reactor.state.snapshot import Snapshot

_HEADERS = (
    "planner",
    "moves",
    "unplaced",
    "spread",
    "overloaded",
    "blocking",
    "cured",
    "watts",
    "idle",
    "feasible",
    "time",
    "waives",
)


@dataclass(frozen=True, slots=True)
class Compared:
    planner: str
    plan: Plan
    seconds: float
    waives: tuple[str, ...]
    cured: int
    """Unhappy pods whose node ends clearly less loaded than the one they are on now."""


@dataclass(frozen=True, slots=True)
class NotCompared:
    planner: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlannerComparison:
    unhappy: int
    rows: tuple[Compared | NotCompared, ...]


def compare(snapshot: Snapshot, settings: Settings) -> PlannerComparison:
    """Each planner with its defaults. The planner of the settings has the parameters that are set for it."""
    decision = decide(Eligibility(snapshot, Cooldowns(), settings), Trigger.DEMAND)
    problems: dict[tuple[str, ...], Problem] = {}
    rows = []
    for name in known_planners():
        wanted = _instead(settings, name)
        axes = rate_axes(wanted.planner)
        if axes not in problems:
            problems[axes] = rematch_problem(Eligibility(snapshot, Cooldowns(), wanted), decision)
        rows.append(_row(wanted.planner, problems[axes]))
    return PlannerComparison(len(decision.unhappy), tuple(rows))


def compare_on(problem: Problem, settings: Settings) -> PlannerComparison:
    """The same for a problem that is already made."""
    rows = [_row(_instead(settings, name).planner, problem) for name in known_planners()]
    return PlannerComparison(sum(not pod.happy for pod in problem.pods), tuple(rows))


def render_comparison(comparison: PlannerComparison, output: str) -> str:
    if output == "json":
        return to_json(_document(comparison))
    if output == "yaml":
        return to_yaml(_document(comparison))
    rows = [_cells(row, comparison.unhappy) for row in comparison.rows if isinstance(row, Compared)]
    lines = [f"{row.planner} is left out: {row.reason}" for row in comparison.rows if isinstance(row, NotCompared)]
    return "\n".join([table(_HEADERS, rows), *([""] if lines else []), *lines])


def _instead(settings: Settings, name: str) -> Settings:
    if name == settings.planner.name:
        return settings
    planner = settings.planner.model_copy(update={"name": name, "parameters": {}})
    return settings.model_copy(update={"planner": planner})


def _row(wanted: Planner, problem: Problem) -> Compared | NotCompared:
    try:
        planner = make_planner(wanted.name, wanted.parameters)
        begin = time.perf_counter()
        plan = planner.plan(problem)
    except ProblemError as error:
        return NotCompared(wanted.name, str(error))
    seconds = time.perf_counter() - begin
    return Compared(wanted.name, plan, seconds, tuple(sorted(planner.waives)), _cured(problem, plan))


def _cured(problem: Problem, plan: Plan) -> int:
    ends = {stay.pod: stay.node for stay in plan.stays} | {move.pod: move.target for move in plan.moves}
    cured = 0
    for pod in problem.pods:
        before = plan.before.node_load.get(pod.node or "")
        after = plan.after.node_load.get(ends.get(pod.key, ""))
        if not pod.happy and before is not None and after is not None:
            cured += after <= before - problem.options.relief + TOLERANCE
    return cured


def _cells(row: Compared, unhappy: int) -> Sequence[str]:
    before, after = row.plan.before, row.plan.after
    return (
        row.planner,
        str(len(row.plan.moves)),
        str(len(row.plan.unplaced)) + (f" ({len(row.plan.dumped)} dumped)" if row.plan.dumped else ""),
        f"{before.spread:.0%} -> {after.spread:.0%}",
        f"{len(before.overloaded)} -> {len(after.overloaded)}",
        str(row.plan.certificate.blocking_pairs),
        f"{row.cured} of {unhappy}",
        *_power(before.power, after.power),
        "yes" if row.plan.certificate.feasible else "NO",
        f"{row.seconds * 1000:.0f} ms",
        ", ".join(row.waives) or "nothing",
    )


def _power(before: PowerUse | None, after: PowerUse | None) -> tuple[str, str]:
    """Watts, and idle nodes."""
    if before is None or after is None:
        return "unknown", "unknown"
    return f"{before.watts:.0f} -> {after.watts:.0f}", f"{len(before.idle)} -> {len(after.idle)}"


def _power_entry(power: PowerUse | None) -> dict[str, Any] | None:
    if power is None:
        return None
    return {"watts": power.watts, "idleNodes": len(power.idle), "idleWatts": power.idle_watts}


def _document(comparison: PlannerComparison) -> dict[str, Any]:
    return {"unhappy": comparison.unhappy, "planners": [_entry(row) for row in comparison.rows]}


def _entry(row: Compared | NotCompared) -> dict[str, Any]:
    if isinstance(row, NotCompared):
        return {"planner": row.planner, "error": row.reason}
    plan = row.plan
    return {
        "planner": row.planner,
        "moves": len(plan.moves),
        "unplaced": len(plan.unplaced),
        "dumped": len(plan.dumped),
        "spread": {"before": plan.before.spread, "after": plan.after.spread},
        "overloaded": {"before": len(plan.before.overloaded), "after": len(plan.after.overloaded)},
        "blockingPairs": plan.certificate.blocking_pairs,
        "feasible": plan.certificate.feasible,
        "cured": row.cured,
        "power": {"before": _power_entry(plan.before.power), "after": _power_entry(plan.after.power)},
        "seconds": row.seconds,
        "waives": list(row.waives),
        "notes": list(plan.notes),
    }
