"""`rematch lab nodes up` and `down`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from loadtests.controlplane.process import identity_of
from loadtests.images.build import APP_IMAGE
from loadtests.nodes.claims import Claim, is_living, living, sweep
from loadtests.nodes.in_cluster import controller_url, deploy_controller
from loadtests.nodes.lab import Lab, LabOptions, real_nodes
from loadtests.nodes.node_files import KubeletPace
from loadtests.nodes.prometheus import queries_over
from loadtests.nodes.spec import LabError, LabNodeSpec, parse_nodes
from reactor.cli.stopping import until_stopped

_STOP_SECONDS = 60.0
CONTROLLER = LabNodeSpec("controller", 500, 1536, taint="lab/controller=only:NoSchedule")
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "lab-app.yaml"
PACE = KubeletPace(housekeeping=2.0)
_SCRAPE_SECONDS = 2.0
_WINDOW_SECONDS = 15


def up(nodes: Sequence[str], *, controller: bool) -> None:
    """Until Ctrl-C."""
    specs = parse_nodes(nodes)
    asyncio.run(until_stopped(_up((*specs, CONTROLLER) if controller else specs)))
    click.echo("stopped; nothing is left", err=True)


async def _up(specs: tuple[LabNodeSpec, ...]) -> None:
    options = LabOptions(specs, for_people=True, pace=PACE, scrape_interval=_SCRAPE_SECONDS)
    async with real_nodes(options) as lab:
        settings = lab_settings(lab.prometheus.url)
        path = lab.folder / "settings.yaml"
        path.write_text(yaml.safe_dump(settings))
        url = ""
        if CONTROLLER in specs:
            await deploy_controller(lab, CONTROLLER.name, settings)
            url = await controller_url(lab.api)
        _print_access(lab, specs)
        print_controller(lab.plane.kubeconfig, path, url)
        await asyncio.Event().wait()


def lab_settings(prometheus: str, interval: str = "5s") -> dict[str, Any]:
    """A controller that acts, with short intervals: the lab's kubelets are measured every 2 s instead of minutes."""
    return {
        "apiVersion": "rematch/v1alpha1",
        "mode": "act",
        "happiness": {"halfLife": "60s"},
        "triggers": {"evaluationInterval": "2s"},
        "decision": {"cooldown": "20s", "settle": "10s"},
        "metrics": {
            "prometheus": {"url": prometheus, "interval": interval, "queries": queries_over(_WINDOW_SECONDS)},
            "metricsApi": {"interval": interval},
            "freshness": "40s",
        },
    }


def _print_access(lab: Lab, specs: tuple[LabNodeSpec, ...]) -> None:
    kubectl = f"kubectl --kubeconfig {lab.plane.kubeconfig}"
    click.echo(f"nodes        {', '.join(f'{spec.name} {spec.millicores}m' for spec in specs)}")
    click.echo(f"cgroups      version {lab.cgroup_version}")
    click.echo(f"API server   {lab.plane.url}")
    click.echo(f"Prometheus   {lab.prometheus.url}")
    click.echo(f"kubectl      {kubectl} get pods -A -o wide")
    click.echo(f"image        {APP_IMAGE}, on every node (nodes cannot pull others)")
    if EXAMPLE.exists():  # in a clone
        click.echo(f"example      {kubectl} apply -f {EXAMPLE}")


def print_controller(kubeconfig: Path, settings: Path, url: str) -> None:
    """`url` is that of its pod, empty where the user is to start one."""
    rematch = sys.argv[0]
    if not url:
        click.echo(f"controller   {rematch} run --kubeconfig {kubeconfig} --settings {settings}")
        return
    click.echo(f"controller   {rematch} status --server {url}")
    edit = f"kubectl --kubeconfig {kubeconfig} -n rematch edit configmap rematch"
    click.echo(f"settings     mode: act, in its ConfigMap; to change it: {edit}")


def down() -> None:
    """Ends the labs that run and removes what killed ones left behind."""
    if os.geteuid() != 0:
        raise LabError("real nodes need root: run this with sudo")
    ended = asyncio.run(_down())
    click.echo(f"removed {len(ended)} lab(s)" if ended else "nothing to remove")


async def _down() -> list[Claim]:
    """Ends and removes what it can, then reports what is left."""
    problems: list[str] = []
    running = [claim for claim in living(problems.append) if claim.for_people]
    for claim in running:
        if identity_of(claim.owner.pid) == claim.owner:
            os.kill(claim.owner.pid, signal.SIGTERM)
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            while any(map(is_living, running)):
                await asyncio.sleep(0.2)
    except TimeoutError:
        late = ", ".join(str(claim.owner.pid) for claim in running if is_living(claim))
        problems.append(f"still running {_STOP_SECONDS:g} s after SIGTERM: process {late}")
    swept = await sweep(problems.append)
    if problems:
        raise LabError("; ".join(problems))
    return [*running, *swept]
