"""`python -m loadtests.embedded --port N --kubeconfig FILE`: the cluster alone, to try it by hand with kubectl."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from loadtests.embedded.server import ClusterOptions, EmbeddedCluster


@click.command()
@click.option("--port", default=0, show_default="a free one", help="Port on 127.0.0.1.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Where to write the kubeconfig.")
@click.option("--token", default="", help="Bearer token that requests have to carry.")
@click.option("--seed", default=0, show_default=True, help="Names and the scheduler's ties follow from it.")
def main(port: int, kubeconfig: Path, token: str, seed: int) -> None:
    asyncio.run(_serve(port, kubeconfig, ClusterOptions(seed=seed, token=token)))


async def _serve(port: int, kubeconfig: Path, options: ClusterOptions) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    cluster = EmbeddedCluster(options)
    await cluster.start(port)
    cluster.kubeconfig(kubeconfig)
    click.echo(f"serving {cluster.url}; try: kubectl --kubeconfig {kubeconfig} get nodes")
    await stop.wait()
    await cluster.stop()


if __name__ == "__main__":
    main()
