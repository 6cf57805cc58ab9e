"""What commands that plan share: their settings, and the same decision and planning as in the controller, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matching.plan import Plan, Planner
from matching.problem import Problem, ProblemError
from reactor.cli.plan_output import ShownPlan
from reactor.cluster.kinds import ObjectName
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.decide import Decision, Trigger, decide
from reactor.decision.eligibility import Eligibility
from reactor.errors import InputError, SettingsError
from reactor.planning.problems import rematch_problem
from reactor.settings.document import read_document, read_file
from reactor.settings.load import parse_settings
from reactor.settings.model import Mode, Settings
from reactor.settings.model import Planner as PlannerSettings
from reactor.settings.planner import FUNCTION, make_planner, planner_errors
from reactor.state.snapshot import Snapshot
from storage.place import Place


@dataclass(frozen=True, slots=True)
class PlanRequest:
    files: tuple[str, ...]
    settings_file: Path | None
    configmap: ObjectName | None
    output: str
    planner: str | None
    parameters: tuple[str, ...]
    compare: bool
    scope: str | None
    scheduler_name: str | None
    now: str | None
    needs: str | None
    apply: bool
    yes: bool
    force: bool
    store: Place | None
    default_store: Place
    """Where --apply records without --store."""
    kubeconfig: str | None
    context: str | None
    prometheus_token_file: Path | None = None
    prometheus_token_host: str | None = None
    prometheus_ca_file: Path | None = None
    planner_function: str | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    snapshot: Snapshot
    decision: Decision
    problem: Problem
    plan: Plan
    notes: tuple[str, ...]
    """For the reader, beyond those of the planner."""

    @property
    def shown(self) -> ShownPlan:
        plan = replace(self.plan, notes=(*self.plan.notes, *self.notes))
        return ShownPlan(plan, decision=self.decision, needs=self.snapshot.needs)


def settings_for(file: Path | None, scheduler_name: str | None) -> Settings:
    """The settings of a file or the defaults, as if we managed the pods of that scheduler."""
    settings = parse_settings(read_file(file), str(file)) if file is not None else Settings()
    return settings.model_copy(update={"scheduler_name": scheduler_name}) if scheduler_name else settings


def requested_settings(request: PlanRequest, settings: Settings, planner: PlannerSettings | None = None) -> Settings:
    """The settings with the options of the command line. `planner` replaces theirs."""
    before = planner or settings.planner
    given: dict[str, Any] = {"name": request.planner, "scope": request.scope}
    fields = before.model_dump() | {key: value for key, value in given.items() if value is not None}
    if fields["name"] != before.name:
        fields["parameters"] = {}
    if fields["name"] == FUNCTION and request.planner_function:
        fields["parameters"] = {"path": request.planner_function}
    fields["parameters"] = _with_parameters(fields["parameters"], request.parameters)
    update: dict[str, Any] = {"planner": PlannerSettings.model_validate(fields)}
    if request.scheduler_name:
        update["scheduler_name"] = request.scheduler_name
    if request.apply:
        update["mode"] = Mode.ACT
    requested = settings.model_copy(update=update)
    if problems := planner_errors(requested):
        raise SettingsError(problems)
    return requested


def _with_parameters(parameters: Mapping[str, Any], given: Iterable[str]) -> dict[str, Any]:
    """`overload=1.1` and `weights.cpu=2`, each value as in the settings file."""
    result = deepcopy(dict(parameters))
    for each in given:
        path, equals, text = each.partition("=")
        if not equals or not all(path.split(".")):
            raise InputError(f"--set: {each!r} names no value; write NAME=VALUE, such as overload=1.1")
        *sections, name = path.split(".")
        inner = result
        for section in sections:
            inner = inner.setdefault(section, {})
            if not isinstance(inner, dict):
                raise InputError(f"--set: {path} is inside of {section}, which is already given as a value")
        try:
            inner[name] = read_document(text)
        except SettingsError as error:
            raise InputError(f"--set: {each!r} cannot be read: {error}") from error
    return result


def make_plan(
    snapshot: Snapshot, settings: Settings, notes: Iterable[str] = (), cooldowns: Cooldowns | None = None
) -> Planned:
    """`notes` are shown after those of the planner."""
    eligibility = Eligibility(snapshot, cooldowns or Cooldowns(), settings)
    decision = decide(eligibility, Trigger.DEMAND)
    planner = make_planner(settings.planner.name, settings.planner.parameters)
    problem = rematch_problem(eligibility, decision)
    notes = (*_waived(planner), *_other_schedulers(eligibility), *notes)
    return Planned(snapshot, decision, problem, solve(planner, problem), notes)


def solve(planner: Planner, problem: Problem) -> Plan:
    """Raise InputError for a problem that the planner refuses."""
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
    management = eligibility.management
    covered = [pod for pod in pods if pod.node and management.covers(pod)]
    names = [pod.scheduler_name for pod in covered if not management.takes_any_scheduler(pod.namespace)]
    others = Counter(name for name in names if name != settings.scheduler_name)
    for name, number in others.most_common(1):
        yield (
            f"{number} of {len(covered)} managed pods stay because their schedulerName is {name}, not"
            f" {settings.scheduler_name}, and managed.anySchedulerNamespaces does not name their namespace;"
            f" --scheduler-name {name} plans as if we managed them"
        )
