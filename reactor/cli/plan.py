"""`rematch plan`: one plan from files or from the live cluster, shown or (live only) carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reactor.cli.options import cluster_options, settings_option


@click.command()
@click.option("-f", "--filename", "files", multiple=True, help="What `kubectl get ... -o json` printed; `-` is stdin.")
@settings_option
@click.option(
    "-o", "--output", type=click.Choice(["table", "wide", "json", "yaml"]), default="table", show_default=True
)
@click.option("--planner", help="Planner to use instead of the settings' one.")
@click.option(
    "--set",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the planner, such as overload=1.1 or weights.cpu=2; may be repeated.",
)
@click.option("--compare", is_flag=True, help="All planners side by side, instead of one plan.")
@click.option(
    "--scope",
    type=click.Choice(["cluster", "affected", "unhappy"]),
    help="Instead of planner.scope of the settings.",
)
@click.option("--scheduler-name", help="Plan as if pods with this schedulerName were ours (settings: schedulerName).")
@click.option("--now", help="RFC 3339 time to plan for; default: the newest timestamp in the files.")
@click.option("--needs", type=click.Choice(["metrics", "requests"]), help="Default: metrics where there are any.")
@click.option("--apply", is_flag=True, help="Carry the plan out on the live cluster; asks first.")
@click.option("--yes", is_flag=True, help="With --apply: do not ask.")
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    help="With --apply: the controller's store, to record the moves in. Default: nothing is kept.",
)
@cluster_options
def plan(**given: Any) -> None:
    """One plan: which pods should move where, and why.

    \b
    From files, before anything is installed:
      kubectl get nodes,pods,deployments,replicasets,statefulsets,daemonsets,jobs,pdb,ns,pvc,pv,events \\
          -A -o json > dump.json
      kubectl get pods.metrics.k8s.io,nodes.metrics.k8s.io -A -o json > metrics.json
      rematch plan -f dump.json -f metrics.json

    \b
    What each planner would do with it:
      rematch plan -f dump.json -f metrics.json --compare
      rematch plan -f dump.json -f metrics.json --planner refine --set overload=1.1 -o wide

    \b
    From the live cluster, carried out after a question:
      rematch plan --apply
    """
    from reactor.cli.planning_session import Request, run

    run(Request(**given))
