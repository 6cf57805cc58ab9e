"""`rematch extender`: the process around kube-scheduler's extender."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import click
import structlog
from prometheus_client import CollectorRegistry

from reactor.cli.stopping import until_stopped
from reactor.clock import SystemClock
from reactor.cluster.kinds import ObjectName
from reactor.extender.process import ExtenderOptions, open_extender
from reactor.extender.server import Address, serve_extender
from reactor.record.logs import configure_logs
from reactor.signals.prometheus import PrometheusAccess

log = structlog.get_logger(__name__)

STOPS_WITHIN = 10.0


@dataclass(frozen=True, slots=True)
class ExtenderRun:
    settings_file: Path | None
    configmap: ObjectName | None
    namespace: str
    bind: str
    port: int
    tls_cert_file: Path | None
    tls_key_file: Path | None
    log_level: str
    log_format: str
    prometheus_token_file: Path | None
    prometheus_token_host: str | None
    prometheus_ca_file: Path | None
    kubeconfig: str | None
    context: str | None


def run_extender(options: ExtenderRun) -> None:
    if options.settings_file is not None and options.configmap is not None:
        raise click.UsageError("--settings and --configmap exclude each other; use one of them")
    configure_logs(level=options.log_level, json=None if options.log_format == "auto" else options.log_format == "json")
    if asyncio.run(until_stopped(_run(options), grace=STOPS_WITHIN)):
        log.info("stopped")


async def _run(options: ExtenderRun) -> None:
    access = PrometheusAccess(
        options.prometheus_token_file, options.prometheus_token_host or "", options.prometheus_ca_file
    )
    start = ExtenderOptions(
        kubeconfig=options.kubeconfig,
        context=options.context,
        settings_file=options.settings_file,
        config_map=options.configmap,
        namespace=options.namespace,
        prometheus=access,
    )
    address, clock = Address(options.bind, options.port, options.tls_cert_file, options.tls_key_file), SystemClock()
    async with (
        open_extender(start, clock) as process,
        serve_extender(process.state, process, CollectorRegistry(), clock, address) as url,
    ):
        log.info("serving", url=url)
        await process.run()
