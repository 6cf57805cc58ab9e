"""`rematch tune`: what other settings would have done with the recorded history."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from reactor.app import Options, open_controller
from reactor.cli.output import show, to_json
from reactor.cli.plan_live import CONFIG_MAP, SYNC_DEADLINE
from reactor.cli.tune_output import document, page, render
from reactor.cli.tune_plot import svg
from reactor.cluster.api import ApiRequest, checked, decoded
from reactor.cluster.connection import open_connection
from reactor.cluster.dump import read_dump
from reactor.cluster.kinds import Kind, ObjectName
from reactor.cluster.view import ClusterView
from reactor.errors import InputError
from reactor.record.logs import configure_logs
from reactor.replay.answer import Candidate
from reactor.replay.candidates import candidates, grid, in_tree
from reactor.replay.given import given_by
from reactor.replay.recorded import DAY, Recorded, read_recorded
from reactor.replay.tuning import Tuning, tune
from reactor.settings.document import Writer, read_document, read_file
from reactor.settings.load import CONFIG_MAP_KEY, parse_settings
from reactor.settings.model import Settings
from reactor.state.from_dump import snapshot_from_dump
from storage.place import Place
from storage.store import Store

_QUIET = 20.0
_DEADLINE = 10.0
_WIDTH = 30
_OBJECT = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """The command line."""

    files: tuple[str, ...]
    store: Place
    settings_file: Path | None
    configmap: ObjectName | None
    changes: tuple[str, ...]
    days: int
    jobs: int
    output: str
    report: Path | None
    apply: bool
    yes: bool
    kubeconfig: str | None
    context: str | None


def run_tune(request: TuneRequest) -> None:
    configure_logs(level="error")
    if request.report is not None and request.report.suffix not in (".html", ".svg"):
        raise InputError(f"--report {request.report}: write a name that ends with .html or .svg")
    values = grid(request.changes)
    cluster = _from_files(request.files) if request.files else asyncio.run(live_cluster(request))
    recorded, in_force = asyncio.run(_recorded(request, cluster))
    wanted = candidates(in_force, values)
    bar = _Bar()
    found = tune(recorded, given_by(recorded, cluster), wanted, request.jobs, bar.show)
    show(to_json(document(found)) if request.output == "json" else render(found, shutil.get_terminal_size().columns))
    if request.report is not None and found.answers:
        text = page(found) if request.report.suffix == ".html" else svg(found.answers)
        request.report.write_text(text, encoding="utf-8")
        click.echo(f"report: {request.report}", err=True)
    if request.apply:
        _apply(request, found)


def _from_files(files: tuple[str, ...]) -> ClusterView:
    return snapshot_from_dump(read_dump(files), Settings()).snapshot.cluster


async def live_cluster(request: TuneRequest) -> ClusterView:
    """The cluster as it is now."""
    with tempfile.TemporaryDirectory(prefix="rematch-tune-") as folder:
        options = Options(
            store=Path(folder, "tune.db"),
            kubeconfig=request.kubeconfig,
            context=request.context,
            config_map=request.configmap or CONFIG_MAP,
            dry_run=True,
        )
        async with open_controller(options) as live:
            await live.connection.send(ApiRequest("GET", "/version", deadline=_DEADLINE))
            watching = asyncio.create_task(live.connect())
            try:
                await live.until_synced(SYNC_DEADLINE)
                return live.controller.state.cluster()
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)


async def _recorded(request: TuneRequest, cluster: ClusterView) -> tuple[Recorded, Settings]:
    """With the settings in force: those of the file, else those that the controller accepted last."""
    async with await Store.open(request.store, read_only=True) as store:
        accepted = next((row for row in await store.revisions() if row.accepted), None)
        if request.settings_file is not None:
            settings = parse_settings(read_file(request.settings_file), str(request.settings_file))
        else:
            settings = parse_settings(accepted.text, accepted.source) if accepted is not None else Settings()
        keys = await store.chunk_keys(300)
        now = min(time.time(), max((start for start, _ in keys if start <= time.time()), default=0) + 3600.0)
        return await read_recorded(store, cluster.nodes, now - request.days * DAY, now), settings


class _Bar:
    """On standard error."""

    def __init__(self) -> None:
        self._began, self._shown = time.monotonic(), float("-inf")

    def show(self, done: int, of: int) -> None:
        now, share = time.monotonic(), done / max(of, 1)
        left = int((now - self._began) / done * (of - done)) if done else 0
        line = f"[{'#' * round(share * _WIDTH):.<{_WIDTH}}] {share:4.0%}  {left // 60}:{left % 60:02} left"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{line}" + ("\n" if done == of else ""))
            sys.stderr.flush()
        elif done == of or now - self._shown >= _QUIET:
            self._shown = now
            click.echo(line, err=True)


def _apply(request: TuneRequest, found: Tuning) -> None:
    if found.recommended is None:
        raise InputError(f"--apply: nothing is written: {found.why}")
    name = request.configmap or CONFIG_MAP
    changes = yaml.dump(found.recommended.candidate.changes, Dumper=Writer, sort_keys=False).rstrip()
    click.echo(f"to be changed in ConfigMap {name.namespace}/{name.name}:\n{changes}", err=True)
    if not request.yes:
        click.confirm("write it?", abort=True, err=True)
    asyncio.run(write_settings(request, name, found.recommended.candidate))
    click.echo(f"ConfigMap {name.namespace}/{name.name} is changed; the controller reads it within seconds", err=True)


async def write_settings(request: TuneRequest, name: ObjectName, candidate: Candidate) -> None:
    """Into the ConfigMap, only if nobody changed it since it was read."""
    connection = await open_connection(request.kubeconfig, request.context)
    path = f"{Kind.CONFIG_MAPS.path(name.namespace)}/{name.name}"
    try:
        body = checked(await connection.send(ApiRequest("GET", path, deadline=_DEADLINE)), path)
        known = decoded(_OBJECT, body, path)
        data = dict(known.get("data") or {})
        tree = in_tree(read_document(data.get(CONFIG_MAP_KEY, "")) or {}, candidate.changes)
        text = yaml.dump(tree, Dumper=Writer, sort_keys=False, allow_unicode=True)
        parse_settings(text, path)
        changed = {**known, "data": {**data, CONFIG_MAP_KEY: text}}
        checked(await connection.send(ApiRequest("PUT", path, body=changed, deadline=_DEADLINE)), path)
    finally:
        await connection.close()
