"""What `rematch plan` does: the same decision and planning as the controller, once, for a person."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from matching.plan import Planner
from matching.problem import ProblemError
from reactor.cli.compare import compare, render_comparison
from reactor.cli.plan_output import Planned, render
from reactor.cluster.dump import read_dump
from reactor.decision.decide import Trigger, decide
from reactor.decision.managed import Management
from reactor.errors import InputError, SettingsError
from reactor.planning.problems import rematch_problem
from reactor.settings.document import read_document, read_file
from reactor.settings.load import parse_settings
from reactor.settings.model import Mode, Settings
from reactor.settings.planner import make_planner, planner_errors
from reactor.state.from_dump import Look, look_at_dump
from reactor.state.snapshot import Needs, Snapshot


@dataclass(frozen=True, slots=True)
class Request:
    """The command line of `rematch plan`."""

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


def run(request: Request) -> None:
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
    if not request.files:
        from reactor.cli.live_plan import plan_live

        wished_settings(request)  # what is wrong with them is said before anything is connected to
        asyncio.run(plan_live(request))
        return
    look, settings = look_at_files(request)
    if request.compare:
        click.echo(compared(look.snapshot, settings, request))
        return
    planned = make_plan(look.snapshot, settings)
    notes = (*planned.plan.notes, *look.notes)
    click.echo(render(replace(planned, plan=replace(planned.plan, notes=notes)), request.output))


def compared(snapshot: Snapshot, settings: Settings, request: Request) -> str:
    return render_comparison(compare(snapshot, settings), request.output)


def look_at_files(request: Request) -> tuple[Look, Settings]:
    settings = wished_settings(request)
    look = look_at_dump(
        read_dump(request.files),
        settings,
        now=_time(request.now) if request.now else None,
        needs=Needs(request.needs) if request.needs else None,
    )
    if not look.snapshot.cluster.nodes:
        raise InputError(f"{', '.join(request.files)}: no nodes; add what `kubectl get nodes -o json` prints")
    return look, settings


def make_plan(snapshot: Snapshot, settings: Settings) -> Planned:
    decision = decide(snapshot, settings, Trigger.DEMAND)
    planner = make_planner(settings.planner.name, settings.planner.parameters)
    try:
        plan = planner.plan(rematch_problem(snapshot, decision, settings))
    except ProblemError as error:
        raise InputError(f"planner {planner.name}: {error}") from error
    notes = (*plan.notes, *_waived(planner), *_foreign(snapshot, settings))
    return Planned(snapshot, decision, replace(plan, notes=notes))


def _waived(planner: Planner) -> Iterator[str]:
    if planner.waives:
        waived = ", ".join(sorted(planner.waives))
        yield f"{planner.name} does not promise {waived}; it acts only with planner.allowUnsafe"


def _foreign(snapshot: Snapshot, settings: Settings) -> Iterator[str]:
    """Most clusters have no pod of ours yet: say why nothing moves, and how to see what could."""
    management = Management.of(settings)
    names = [pod.scheduler_name for pod in snapshot.cluster.pods.values() if management.covers(pod) and pod.node]
    others = Counter(name for name in names if name != settings.scheduler_name)
    for name, number in others.most_common(1):
        yield (
            f"{number} of {len(names)} managed pods stay because their schedulerName is {name}, not"
            f" {settings.scheduler_name}; --scheduler-name {name} plans as if they were ours"
        )


def wished_settings(request: Request) -> Settings:
    """The file's settings (or the defaults), with what the command line says on top."""
    settings = settings_for(request.settings_file, request.scheduler_name)
    said: dict[str, Any] = {"name": request.planner, "scope": request.scope}
    planner = settings.planner.model_dump() | {key: value for key, value in said.items() if value is not None}
    if planner["name"] != settings.planner.name:
        planner["parameters"] = {}
    planner["parameters"] = with_parameters(planner["parameters"], request.parameters)
    update: dict[str, Any] = {"planner": type(settings.planner).model_validate(planner)}
    if request.apply:
        update["mode"] = Mode.ACT
    wished = settings.model_copy(update=update)
    if problems := planner_errors(wished):
        raise SettingsError(problems)
    return wished


def with_parameters(parameters: Mapping[str, Any], said: Iterable[str]) -> dict[str, Any]:
    """`overload=1.1` and `weights.cpu=2`, each value as in the settings file."""
    together = deepcopy(dict(parameters))
    for each in said:
        path, equals, text = each.partition("=")
        if not equals or not all(path.split(".")):
            raise InputError(f"--set: {each!r} names no value; write NAME=VALUE, such as overload=1.1")
        *sections, name = path.split(".")
        inner = together
        for section in sections:
            inner = inner.setdefault(section, {})
            if not isinstance(inner, dict):
                raise InputError(f"--set: {path} is inside of {section}, which is already given as a value")
        try:
            inner[name] = read_document(text)
        except SettingsError as error:
            raise InputError(f"--set: {each!r} cannot be read: {error}") from error
    return together


def settings_for(file: Path | None, scheduler_name: str | None) -> Settings:
    """A file's settings or the defaults, as if pods of that scheduler were ours."""
    settings = parse_settings(read_file(file), str(file)) if file is not None else Settings()
    return settings.model_copy(update={"scheduler_name": scheduler_name}) if scheduler_name else settings


def _time(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"--now: {text!r} is no RFC 3339 time; write e.g. 2026-11-16T12:00:00Z") from error
    if moment.tzinfo is None:
        raise InputError(f"--now: {text!r} has no time zone; write e.g. {text}Z")
    return moment.timestamp()
