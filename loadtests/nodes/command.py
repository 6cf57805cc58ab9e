"""`rematch lab nodes up` and `down`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence

import click

from loadtests.controlplane.leftovers import identity_of
from loadtests.nodes.claims import Claim, living, sweep
from loadtests.nodes.errors import LabError
from loadtests.nodes.in_cluster import deploy_controller
from loadtests.nodes.lab import LabOptions, real_nodes
from loadtests.nodes.spec import NodeSpec, parse_nodes
from reactor.cli.stopping import until_stopped

_STOP_SECONDS = 60.0
CONTROLLER = NodeSpec("controller", 500, 1536, taint="lab/controller=only:NoSchedule")


def up(nodes: Sequence[str], *, controller: bool) -> None:
    """Until Ctrl-C."""
    specs = parse_nodes(nodes)
    asyncio.run(until_stopped(_up((*specs, CONTROLLER) if controller else specs)))
    click.echo("stopped; nothing is left", err=True)


async def _up(specs: tuple[NodeSpec, ...]) -> None:
    async with real_nodes(LabOptions(specs, for_people=True)) as lab:
        if CONTROLLER in specs:
            url = lab.prometheus.url
            await deploy_controller(lab, CONTROLLER.name, {"mode": "observe", "metrics": {"prometheus": {"url": url}}})
        kubeconfig = lab.plane.kubeconfig
        click.echo(f"nodes        {', '.join(f'{spec.name} {spec.millicores}m' for spec in specs)}")
        click.echo(f"cgroups      version {lab.cgroup_version}")
        click.echo(f"API server   {lab.plane.url}")
        click.echo(f"Prometheus   {lab.prometheus.url}")
        click.echo(f"kubectl      kubectl --kubeconfig {kubeconfig} get pods -A -o wide")
        if CONTROLLER not in specs:
            click.echo(f"controller   rematch run --kubeconfig {kubeconfig}")
        await asyncio.Event().wait()


def down() -> None:
    """Ends the labs that run and removes what killed ones left behind."""
    if os.geteuid() != 0:
        raise LabError("real nodes need root: run this with sudo")
    ended = asyncio.run(_down())
    click.echo(f"removed {len(ended)} lab(s)" if ended else "nothing to remove")


async def _down() -> list[Claim]:
    running = [claim for claim in living() if claim.for_people]
    for claim in running:
        if identity_of(claim.owner.pid) == claim.owner:
            os.kill(claim.owner.pid, signal.SIGTERM)
    async with asyncio.timeout(_STOP_SECONDS):
        while any(claim.for_people for claim in living()):
            await asyncio.sleep(0.2)
    return [*running, *await sweep()]
