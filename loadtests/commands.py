"""The commands that the lab adds to `rematch`; what they need is imported only when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

STATE = Path(".rematch/demo")


@click.command()
@click.option("--duration", help="Per arm, e.g. 120s. Default: until Ctrl-C, or 120s with --headless.")
@click.option("--headless", is_flag=True, help="Both arms (default placement left alone; rematch), no person needed.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the apps' work, the arrivals and the ties.")
@click.option("--threshold", type=click.FloatRange(0, 1), default=0.8, show_default=True, help="Happiness threshold.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Of the dashboard.")
@click.option("--load", type=click.Choice(["auto", "builtin", "k6"]), default="auto", show_default=True,
              help="auto takes k6 when it is on the PATH.")  # fmt: skip
@click.option(
    "--state", type=click.Path(path_type=Path), default=STATE, show_default=True, help="Folder for its files."
)
def demo(**given: Any) -> None:
    """The main job on an embedded cluster: load overruns a weak node, probes fail, pods move."""
    from loadtests.demo.main import Request, main

    main(Request(**given))


@click.group()
def lab() -> None:
    """The lab: an embedded cluster by itself, and comparisons over several seeds."""


@lab.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Of the API server; 0: any.")
@click.option(
    "--state", type=click.Path(path_type=Path), default=STATE, show_default=True, help="Folder for its files."
)
@click.option("--seed", type=int, default=1, show_default=True)
def up(port: int, state: Path, seed: int) -> None:
    """An embedded cluster with the demo's nodes and apps, for kubectl, until Ctrl-C."""
    from loadtests.demo.alone import main

    main(port, state, seed)


@lab.command()
@click.option("--seeds", type=click.IntRange(2, 50), default=5, show_default=True)
@click.option("--duration", default="60s", show_default=True, help="Per arm and seed.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option(
    "--state", type=click.Path(path_type=Path), default=STATE, show_default=True, help="Folder for its files."
)
def compare(seeds: int, duration: str, output: str, state: Path) -> None:
    """The demo's two arms over several seeds, with the interval of the paired difference."""
    from loadtests.demo.compare import main

    main(seeds, duration, output, state)
