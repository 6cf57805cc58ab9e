"""`rematch lab control-plane`: a real control plane by itself, until Ctrl-C."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from loadtests.controlplane.options import ControlPlaneOptions
from loadtests.controlplane.plane import control_plane
from reactor.cli.stopping import until_stopped


def main(folder: Path) -> None:
    asyncio.run(until_stopped(_up(folder)))
    click.echo("stopped", err=True)


async def _up(folder: Path) -> None:
    async with control_plane(ControlPlaneOptions(folder)) as plane:
        click.echo(f"API server   {plane.url} (no nodes yet)")
        click.echo(f"kubectl      kubectl --kubeconfig {plane.kubeconfig} get namespaces")
        click.echo(f"controller   rematch run --kubeconfig {plane.kubeconfig}")
        click.echo(f"logs         {folder / 'log'}")
        await asyncio.Event().wait()
