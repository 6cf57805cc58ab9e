"""`rematch run`: the process around the controller, with logs, signals, the web server and a clean end."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import click
import structlog

from reactor.app import LiveController, Options, open_controller
from reactor.background.start_up import limit_heap
from reactor.cli.stopping import until_stopped
from reactor.cluster.kinds import ObjectName
from reactor.execution.leader import LeaseTiming
from reactor.extender.beside import extender_beside
from reactor.extender.server import Address
from reactor.record.logs import configure_logs
from reactor.settings.model import Mode
from reactor.signals.mqtt import BrokerAccess
from reactor.signals.prometheus import PrometheusAccess
from reactor.web.external_metrics import ExternalMetricsOptions, serve_external_metrics
from reactor.web.server import Auth, Exposure, serve
from storage.place import Place

log = structlog.get_logger(__name__)

STOPS_WITHIN = 20.0
"""Seconds from SIGTERM to the end of the process, below the 30 that Kubernetes gives it."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    settings_file: Path | None
    configmap: ObjectName | None
    store: Place
    models: Path | None
    dry_run: bool
    bind: str
    port: int
    probe_bind: str
    probe_port: int | None
    extender_bind: str
    extender_port: int | None
    auth: str | None
    allowed_hosts: tuple[str, ...]
    log_level: str
    log_format: str
    prometheus_token_file: Path | None
    prometheus_token_host: str | None
    prometheus_ca_file: Path | None
    broker_credentials: Path | None
    broker_host: str | None
    broker_ca_file: Path | None
    broker_certificate_file: Path | None
    broker_key_file: Path | None
    planner_function: str | None
    kubeconfig: str | None
    context: str | None
    namespace: str
    lease_duration: float
    lease_renew_deadline: float
    lease_retry: float
    external_metrics_port: int | None
    external_metrics_certificate: Path
    external_metrics_key: Path


def run_controller(options: RunOptions) -> None:
    if options.settings_file is not None and options.configmap is not None:
        raise click.UsageError("--settings and --configmap exclude each other; use one of them")
    configure_logs(level=options.log_level, json=None if options.log_format == "auto" else options.log_format == "json")
    limit_heap()
    if asyncio.run(until_stopped(_run(options), grace=STOPS_WITHIN)):
        log.info("stopped")


async def _run(options: RunOptions) -> None:
    start = Options(
        store=options.store,
        models=options.models,
        kubeconfig=options.kubeconfig,
        context=options.context,
        settings_file=options.settings_file,
        config_map=options.configmap,
        dry_run=options.dry_run,
        mode=Mode.OBSERVE if options.dry_run else None,
        prometheus=PrometheusAccess(
            options.prometheus_token_file, options.prometheus_token_host or "", options.prometheus_ca_file
        ),
        broker=BrokerAccess(
            options.broker_credentials,
            options.broker_host or "",
            options.broker_ca_file,
            options.broker_certificate_file,
            options.broker_key_file,
        ),
        planner_function=options.planner_function or "",
        namespace=options.namespace,
        lease=LeaseTiming(options.lease_duration, options.lease_renew_deadline, options.lease_retry),
        own_process=True,
    )
    exposure = Exposure(
        Auth(options.auth) if options.auth else None, options.allowed_hosts, options.probe_bind, options.probe_port
    )
    async with AsyncExitStack() as stack:
        live = await stack.enter_async_context(open_controller(start))
        await _serve_external_metrics(options, live, stack)
        url = await stack.enter_async_context(serve(live, options.bind, options.port, exposure))
        log.info("serving", url=url, cluster=live.connection.server)
        if options.extender_port is not None:
            address = Address(options.extender_bind, options.extender_port)
            extender = await stack.enter_async_context(extender_beside(live, address))
            log.info("serving the extender of kube-scheduler", url=extender)
        try:
            await live.run()
        finally:
            log.info("stopping")


async def _serve_external_metrics(options: RunOptions, live: LiveController, stack: AsyncExitStack) -> None:
    """Where the group belongs to another server, this process does not start."""
    if options.external_metrics_port is None:
        return
    served = ExternalMetricsOptions(
        options.external_metrics_port, options.external_metrics_certificate, options.external_metrics_key
    )
    controller = live.controller
    metrics, clock = controller.instruments.workloads, controller.clock
    await stack.enter_async_context(serve_external_metrics(served, metrics, live.connection, live.namespace, clock))
