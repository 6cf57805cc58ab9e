"""`rematch run`: the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reactor.cli.options import cluster_options, settings_option


@click.command()
@settings_option
@click.option("--configmap", help="NAMESPACE/NAME of the ConfigMap with the settings (key settings.yaml), watched.")
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    default=Path(".rematch/rematch.db"),
    show_default=True,
    help="SQLite file for happiness, plans and moves.",
)
@click.option("--dry-run", is_flag=True, help="Plan and record only, whatever the settings say; not even Events.")
@click.option(
    "--bind", default="127.0.0.1", show_default=True, help="Address of dashboard, API, /metrics and /healthz."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
@click.option("--log-format", type=click.Choice(["auto", "json", "console"]), default="auto", show_default=True)
@cluster_options
def run(**given: Any) -> None:
    """The controller: watches, decides, plans, and in `mode: act` moves.

    Connects by the pod's service account inside a cluster, else by kubeconfig. The default mode is observe: it
    plans and records and touches nothing until the settings say `mode: act`.
    """
    from reactor.cli.running import Request, main

    main(Request(**given))
