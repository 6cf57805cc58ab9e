"""The process around the controller: logs, signals, the web server, and a clean end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import click
import structlog

from reactor.app import Options, open_controller
from reactor.cli.stopping import until_stopped
from reactor.cluster.kinds import ObjectName
from reactor.errors import InputError
from reactor.record.logs import configure_logs
from reactor.settings.model import Mode
from reactor.web.serving import serve

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """The command line of `rematch run`."""

    settings_file: Path | None
    configmap: str | None
    store: Path
    dry_run: bool
    bind: str
    port: int
    log_level: str
    log_format: str
    kubeconfig: str | None
    context: str | None


def main(request: Request) -> None:
    if request.settings_file is not None and request.configmap is not None:
        raise click.UsageError("--settings and --configmap exclude each other; the settings have one home")
    configure_logs(level=request.log_level, json=None if request.log_format == "auto" else request.log_format == "json")
    asyncio.run(_run(request))


async def _run(request: Request) -> None:
    options = Options(
        store=request.store,
        kubeconfig=request.kubeconfig,
        context=request.context,
        settings_file=request.settings_file,
        config_map=_config_map(request.configmap),
        dry_run=request.dry_run,
        mode=Mode.OBSERVE if request.dry_run else None,
        own_process=True,
    )
    async with open_controller(options) as live, serve(live, request.bind, request.port) as url:
        log.info("ready to be looked at", url=url, cluster=live.connection.server)
        if await until_stopped(live.run()):
            log.info("stopping")


def _config_map(text: str | None) -> ObjectName | None:
    if text is None:
        return None
    namespace, slash, name = text.partition("/")
    if not slash or not namespace or not name or "/" in name:
        raise InputError(f"--configmap: {text!r} is not NAMESPACE/NAME")
    return ObjectName(namespace, name)
