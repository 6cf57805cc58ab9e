"""Settings and plans for commands: the same decision and planning as in the controller, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from matching.plan import Plan, Planner
from matching.problem import Problem, ProblemError
from reactor.cli.plan_output import ShownPlan
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.decide import Decision, Trigger, decide
from reactor.decision.eligibility import Eligibility
from reactor.errors import InputError
from reactor.planning.problems import rematch_problem
from reactor.settings.document import read_file
from reactor.settings.load import parse_settings
from reactor.settings.model import Planner as PlannerSettings
from reactor.settings.model import Settings
from reactor.settings.planner import make_planner
from reactor.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Planned:
    snapshot: Snapshot
    decision: Decision
    plan: Plan

    @property
    def shown(self) -> ShownPlan:
        return ShownPlan(self.plan, decision=self.decision, needs=self.snapshot.needs)


def settings_for(file: Path | None, scheduler_name: str | None) -> Settings:
    """The settings of a file or the defaults, as if we managed the pods of that scheduler."""
    settings = parse_settings(read_file(file), str(file)) if file is not None else Settings()
    return settings.model_copy(update={"scheduler_name": scheduler_name}) if scheduler_name else settings


def make_plan(snapshot: Snapshot, settings: Settings) -> Planned:
    eligibility = Eligibility(snapshot, Cooldowns(), settings)
    decision = decide(eligibility, Trigger.DEMAND)
    plan = solve(rematch_problem(eligibility, decision), settings.planner)
    planner = make_planner(settings.planner.name, settings.planner.parameters)
    notes = (*plan.notes, *_waived(planner), *_other_schedulers(eligibility))
    return Planned(snapshot, decision, replace(plan, notes=notes))


def solve(problem: Problem, settings: PlannerSettings) -> Plan:
    """Raise InputError for a problem that the planner refuses."""
    planner = make_planner(settings.name, settings.parameters)
    try:
        return planner.plan(problem)
    except ProblemError as error:
        raise InputError(f"planner {planner.name}: {error}") from error


def _waived(planner: Planner) -> Iterator[str]:
    if planner.waives:
        waived = ", ".join(sorted(planner.waives))
        yield f"{planner.name} does not promise {waived}; it acts only with planner.allowUnsafe"


def _other_schedulers(eligibility: Eligibility) -> Iterator[str]:
    """Most clusters have no managed pod at first: say why nothing moves, and how to see what could."""
    settings, pods = eligibility.settings, eligibility.snapshot.cluster.pods.values()
    names = [pod.scheduler_name for pod in pods if pod.node and eligibility.management.covers(pod)]
    others = Counter(name for name in names if name != settings.scheduler_name)
    for name, number in others.most_common(1):
        yield (
            f"{number} of {len(names)} managed pods stay because their schedulerName is {name}, not"
            f" {settings.scheduler_name}; --scheduler-name {name} plans as if we managed them"
        )
