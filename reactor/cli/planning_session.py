"""What `rematch plan` does: the same decision and planning as the controller, once, for a person."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import click

from matching.registry import load_planner
from reactor.cli.plan_output import Planned, render
from reactor.cluster.dump import read_dump
from reactor.decision import Trigger, decide
from reactor.errors import InputError
from reactor.management import Management
from reactor.offline import look_at_dump
from reactor.planning import rematch_problem
from reactor.settings.file import read_file
from reactor.settings.load import parse_settings
from reactor.settings.model import Settings
from reactor.snapshot import Needs, Snapshot


@dataclass(frozen=True, slots=True)
class Request:
    """The command line of `rematch plan`."""

    files: tuple[str, ...]
    settings_file: Path | None
    output: str
    planner: str | None
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
    if not request.files:
        from reactor.cli.live_plan import plan_live

        asyncio.run(plan_live(request))
        return
    click.echo(render(plan_from_files(request), request.output))


def plan_from_files(request: Request) -> Planned:
    settings = wished_settings(request)
    look = look_at_dump(
        read_dump(request.files),
        settings,
        now=_time(request.now) if request.now else None,
        needs=Needs(request.needs) if request.needs else None,
    )
    if not look.snapshot.cluster.nodes:
        raise InputError(f"{', '.join(request.files)}: no nodes; add what `kubectl get nodes -o json` prints")
    planned = make_plan(look.snapshot, settings)
    return replace(planned, plan=replace(planned.plan, notes=(*planned.plan.notes, *look.notes)))


def make_plan(snapshot: Snapshot, settings: Settings) -> Planned:
    decision = decide(snapshot, settings, Trigger.DEMAND)
    plan = load_planner(settings.planner.name).plan(rematch_problem(snapshot, decision, settings))
    return Planned(snapshot, decision, replace(plan, notes=(*plan.notes, *_foreign(snapshot, settings))))


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
    said = {"name": request.planner, "scope": request.scope}
    planner = settings.planner.model_dump() | {key: value for key, value in said.items() if value is not None}
    return settings.model_copy(update={"planner": type(settings.planner).model_validate(planner)})


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
