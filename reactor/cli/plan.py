"""`rematch plan`: one plan from files, from a stored problem or from the live cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from matching.problem import Problem
from reactor.cli.compare import compare, compare_on, render_comparison
from reactor.cli.plan_output import ShownPlan, render
from reactor.cli.planning import make_plan, settings_for, solve
from reactor.cluster.dump import read_dump, read_input
from reactor.errors import InputError, SettingsError
from reactor.record.stored_problem import StoredProblem, is_problem, read_problem
from reactor.settings.document import read_document
from reactor.settings.model import Mode, Planner, Settings
from reactor.settings.planner import planner_errors
from reactor.state.from_dump import snapshot_from_dump
from reactor.state.snapshot import Needs


@dataclass(frozen=True, slots=True)
class PlanRequest:
    files: tuple[str, ...]
    settings_file: Path | None
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
    store: Path | None
    kubeconfig: str | None
    context: str | None


def plan_and_show(request: PlanRequest) -> None:
    _check(request)
    if not request.files:
        from reactor.cli.plan_live import plan_live

        requested_settings(request)  # report errors before connecting
        asyncio.run(plan_live(request))
        return
    data = {path: read_input(path) for path in request.files}
    first = next(iter(data.values()))
    if len(data) == 1 and is_problem(first):
        click.echo(_from_problem(request, *read_problem(first)))
    else:
        click.echo(_from_dump(request, data))


def _check(request: PlanRequest) -> None:
    if request.files and request.apply:
        raise click.UsageError("--apply needs the live cluster; leave out -f")
    if request.scheduler_name and request.apply:
        raise click.UsageError(
            "--scheduler-name is for trying out; --apply moves only pods that our binder binds again"
        )
    if request.yes and not request.apply:
        raise click.UsageError("--yes goes with --apply")
    if request.compare and (request.apply or request.output == "wide"):
        raise click.UsageError("--compare makes no plan to apply or to show in detail; leave out one of them")


def _from_dump(request: PlanRequest, data: Mapping[str, bytes]) -> str:
    settings = requested_settings(request)
    look = snapshot_from_dump(
        read_dump(request.files, data),
        settings,
        now=_time(request.now) if request.now else None,
        needs=Needs(request.needs) if request.needs else None,
    )
    if not look.snapshot.cluster.nodes:
        raise InputError(f"{', '.join(request.files)}: no nodes; add what `kubectl get nodes -o json` prints")
    if request.compare:
        return render_comparison(compare(look.snapshot, settings), request.output)
    planned = make_plan(look.snapshot, settings)
    notes = (*planned.plan.notes, *look.notes)
    return render(replace(planned.shown, plan=replace(planned.plan, notes=notes)), request.output)


def _from_problem(request: PlanRequest, problem: Problem, stored: StoredProblem | None) -> str:
    """With the planner and the parameters of the stored plan, unless the command line names others."""
    fixed = {"--scope": request.scope, "--scheduler-name": request.scheduler_name}
    fixed |= {"--now": request.now, "--needs": request.needs}
    for option, value in fixed.items():
        if value is not None:
            raise click.UsageError(f"{option} is part of the problem; it cannot be changed with a problem file")
    planner = Planner(name=stored.planner, parameters=stored.parameters) if stored is not None else None
    settings = requested_settings(request, planner if request.settings_file is None else None)
    if request.compare:
        return render_comparison(compare_on(problem, settings), request.output)
    plan = solve(problem, settings.planner)
    return render(ShownPlan(plan, staying=len(plan.stays)), request.output)


def requested_settings(request: PlanRequest, planner: Planner | None = None) -> Settings:
    """The settings of the file or the defaults, with the options of the command line. `planner` replaces theirs."""
    settings = settings_for(request.settings_file, request.scheduler_name)
    before = planner or settings.planner
    given: dict[str, Any] = {"name": request.planner, "scope": request.scope}
    fields = before.model_dump() | {key: value for key, value in given.items() if value is not None}
    if fields["name"] != before.name:
        fields["parameters"] = {}
    fields["parameters"] = _with_parameters(fields["parameters"], request.parameters)
    update: dict[str, Any] = {"planner": Planner.model_validate(fields)}
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


def _time(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"--now: {text!r} is no RFC 3339 time; write e.g. 2026-11-16T12:00:00Z") from error
    if moment.tzinfo is None:
        raise InputError(f"--now: {text!r} has no time zone; write e.g. {text}Z")
    return moment.timestamp()
