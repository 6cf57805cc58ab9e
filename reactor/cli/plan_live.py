"""`rematch plan` on the live cluster, with the settings of its controller. `plan_apply` carries the plan out."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import click

from reactor.app import LiveController, Options, open_controller
from reactor.cli.compare import compare, render_comparison
from reactor.cli.output import show
from reactor.cli.plan_apply import (
    ANSWER_DEADLINE,
    StoreUse,
    apply_plan,
    confirm,
    refuse_beside_controller,
    requested,
    until_acting,
    use_of_store,
)
from reactor.cli.plan_output import render
from reactor.cli.planning import PlanRequest, make_plan, requested_settings, settings_for
from reactor.cli.requests import ask_and_show
from reactor.cluster.api import ApiRequest
from reactor.cluster.kinds import Kind, ObjectName
from reactor.errors import InputError, SettingsError
from reactor.execution.asking import controller_leads
from reactor.record.logs import configure_logs
from reactor.settings.model import Mode, Settings
from reactor.signals.prometheus import PrometheusAccess
from reactor.state.snapshot import Needs
from storage.place import Place

CONFIG_MAP = ObjectName("rematch", "rematch")
"""The settings of the controller, as `deploy/rematch.yaml` installs it."""
SYNC_DEADLINE = 60.0


async def plan_live(request: PlanRequest) -> None:
    configure_logs(level="error")
    if request.settings_file is not None or request.planner is not None:
        requested_settings(request, settings_for(request.settings_file, None))  # report errors before connecting
    if request.apply:
        path = request.store or request.default_store
        use = await use_of_store(path)
        await _plan_on(_options(request, path, share_store=use is not StoreUse.FREE), request, use)
        return
    with tempfile.TemporaryDirectory(prefix="rematch-plan-") as folder:
        await _plan_on(_options(request, Path(folder, "plan.db")), request, StoreUse.FREE)


def _options(request: PlanRequest, store: Place, *, share_store: bool = False) -> Options:
    return Options(
        store=store,
        history=None if request.apply else request.store,
        share_store=share_store,
        kubeconfig=request.kubeconfig,
        context=request.context,
        settings_file=request.settings_file,
        config_map=None if request.settings_file is not None else request.configmap or CONFIG_MAP,
        dry_run=not request.apply,
        mode=Mode.ACT if request.apply else Mode.OBSERVE,
        prometheus=PrometheusAccess(
            request.prometheus_token_file, request.prometheus_token_host or "", request.prometheus_ca_file
        ),
        planner_function=request.planner_function or "",
    )


async def _plan_on(options: Options, request: PlanRequest, use: StoreUse) -> None:
    """Watch the cluster as long as the command runs."""
    async with open_controller(options) as live:
        # An API server that does not answer is reported now, not after the watches have tried for a minute.
        await live.connection.send(ApiRequest("GET", "/version", deadline=ANSWER_DEADLINE))
        leads = await controller_leads(live.connection, live.namespace, live.controller.clock) if request.apply else ""
        connection = asyncio.create_task(live.connect())
        leader = asyncio.create_task(live.lead() if not leads else asyncio.sleep(0))
        work = asyncio.create_task(_plan(live, request, use, leads))
        try:
            await asyncio.wait({connection, work}, return_when=asyncio.FIRST_COMPLETED)
            if connection.done():
                connection.result()
            await work
        finally:
            for task in (work, connection, leader):
                task.cancel()
            await asyncio.gather(work, connection, leader, return_exceptions=True)
            await live.step_down()


async def _plan(live: LiveController, request: PlanRequest, use: StoreUse, leads: str) -> None:
    """`leads` is the controller that leads, and then carries the plan out."""
    await live.until_synced(SYNC_DEADLINE)
    if request.apply and not leads:
        await refuse_beside_controller(live, request.configmap or CONFIG_MAP, use, force=request.force)
    click.echo(_settings_in_force(live, request), err=True)
    await live.metrics.once()
    if live.steering_check is not None:
        await live.steering_check.step()
    controller = live.controller

    made = in_force = live.settings.get()

    def settings() -> Settings:
        """Made again only when others are in force: every cycle asks several times."""
        nonlocal made, in_force
        if made is in_force or live.settings.get() is not in_force:
            in_force = live.settings.get()
            made = requested_settings(request, in_force)
        return made

    needs = Needs(request.needs) if request.needs else Needs.METRICS
    snapshot = controller.state.freeze(controller.executor.active_moves(), needs=needs)
    if request.compare:
        show(render_comparison(compare(snapshot, settings()), request.output))
        return
    planned = make_plan(snapshot, settings(), cooldowns=controller.memory.cooldowns)
    show(render(planned.shown, request.output))
    if not request.apply or not (planned.plan.moves or planned.plan.dumped):
        return
    if not request.yes:
        await confirm(controller, planned.plan)
    if leads:
        await ask_and_show(live.connection, live.namespace, requested(planned.plan, leads), controller.clock)
        return
    await until_acting(live)
    to_stderr = request.output in ("json", "yaml")
    await apply_plan(controller, planned, lambda: controller.acting.limited(settings()), to_stderr=to_stderr)


def _settings_in_force(live: LiveController, request: PlanRequest) -> str:
    """Settings that the controller refuses are refused here, too: which ones are in force there is not known."""
    source = live.settings.source
    if source.refused is not None:
        raise SettingsError(source.refused.problems, source.refused.source)
    if request.settings_file is not None or live.controller.state.mirror.records(Kind.CONFIG_MAPS):
        return f"settings: {source.current.source}"
    name = request.configmap or CONFIG_MAP
    if request.configmap is not None:
        raise InputError(f"--configmap: there is no ConfigMap {name.namespace}/{name.name} in this cluster")
    return f"settings: the defaults, because there is no ConfigMap {name.namespace}/{name.name} in this cluster"
