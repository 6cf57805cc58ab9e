"""`rematch plan`: one plan from files, from a stored problem or from the live cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime

import click

from matching.problem import Problem
from reactor.cli.compare import compare, compare_on, render_comparison
from reactor.cli.output import show
from reactor.cli.plan_output import ShownPlan, render
from reactor.cli.planning import PlanRequest, make_plan, requested_settings, settings_for, solve
from reactor.cluster.dump import read_dump, read_input
from reactor.errors import InputError
from reactor.record.stored_problem import StoredProblem, is_problem, read_problem
from reactor.settings.model import Planner
from reactor.settings.planner import make_planner
from reactor.state.from_dump import snapshot_from_dump
from reactor.state.snapshot import Needs


def plan_and_show(request: PlanRequest) -> None:
    _check(request)
    if not request.files:
        from reactor.cli.plan_live import plan_live

        asyncio.run(plan_live(request))
        return
    data = {path: read_input(path) for path in request.files}
    problems = [content for content in data.values() if is_problem(content)]
    if problems and len(data) > 1:
        raise click.UsageError("a problem file is whole by itself; leave out the other files")
    if problems:
        show(_from_problem(request, *read_problem(problems[0])))
    else:
        show(_from_dump(request, data))


def _check(request: PlanRequest) -> None:
    if request.files and request.apply:
        raise click.UsageError("--apply needs the live cluster; leave out -f")
    if request.scheduler_name and request.apply:
        raise click.UsageError(
            "--scheduler-name is for trying out; --apply moves only pods that our binder binds again"
        )
    if request.files and request.store is not None:
        raise click.UsageError("--store has what a controller saw of the live cluster; leave it out with -f")
    if (request.yes or request.force) and not request.apply:
        raise click.UsageError(f"--{'yes' if request.yes else 'force'} goes with --apply")
    if request.configmap is not None and (request.files or request.settings_file is not None):
        raise click.UsageError("--configmap reads the live cluster's settings; leave out -f and --settings")
    if request.compare and (request.apply or request.output == "wide"):
        raise click.UsageError("--compare makes no plan to apply or to show in detail; leave out one of them")


def _from_dump(request: PlanRequest, data: Mapping[str, bytes]) -> str:
    settings = requested_settings(request, settings_for(request.settings_file, None))
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
    return render(make_plan(look.snapshot, settings, look.notes).shown, request.output)


def _from_problem(request: PlanRequest, problem: Problem, stored: StoredProblem | None) -> str:
    """With the planner and the parameters of the stored plan, unless the command line names others."""
    fixed = {"--scope": request.scope, "--scheduler-name": request.scheduler_name}
    fixed |= {"--now": request.now, "--needs": request.needs}
    for option, value in fixed.items():
        if value is not None:
            raise click.UsageError(f"{option} is part of the problem; it cannot be changed with a problem file")
    planner = Planner(name=stored.planner, parameters=stored.parameters) if stored is not None else None
    given = settings_for(request.settings_file, None)
    settings = requested_settings(request, given, planner if request.settings_file is None else None)
    if request.compare:
        return render_comparison(compare_on(problem, settings), request.output)
    plan = solve(make_planner(settings.planner.name, settings.planner.parameters), problem)
    return render(ShownPlan(plan, staying=len(plan.stays)), request.output)


def _time(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"--now: {text!r} is no RFC 3339 time; write e.g. 2026-11-16T12:00:00Z") from error
    if moment.tzinfo is None:
        raise InputError(f"--now: {text!r} has no time zone; write e.g. {text}Z")
    return moment.timestamp()
