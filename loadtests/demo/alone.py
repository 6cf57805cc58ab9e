"""`rematch lab up`: the demo's cluster by itself, to point kubectl or a controller at."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from loadtests.demo.cluster import demo_cluster
from loadtests.demo.state_folder import claimed
from loadtests.workloads.stable import stable_scenario
from reactor.cli.stopping import until_stopped
from reactor.clock import SystemClock


def main(port: int, state: Path, seed: int) -> None:
    with claimed(state):
        asyncio.run(until_stopped(_up(port, state, seed)))
    click.echo("stopped", err=True)


async def _up(port: int, state: Path, seed: int) -> None:
    async with demo_cluster(stable_scenario(seed, 3600.0), SystemClock(), port) as lab:
        kubeconfig = lab.cluster.kubeconfig(state / "kubeconfig")
        click.echo(f"API server   {lab.cluster.url}")
        click.echo(f"Prometheus   {lab.prometheus.url}")
        click.echo(f"kubectl      kubectl --kubeconfig {kubeconfig} get pods -A")
        click.echo(f"controller   rematch run --kubeconfig {kubeconfig}")
        await asyncio.Event().wait()
