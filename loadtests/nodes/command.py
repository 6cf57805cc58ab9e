"""`rematch lab nodes up` and `down`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence

import click

from loadtests.controlplane.leftovers import identity_of
from loadtests.nodes.claims import Claim, is_living, living, sweep
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
    """What can be ended and removed is, before an error tells of the rest."""
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
