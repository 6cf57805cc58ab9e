"""`rematch explain POD`: what its happiness came from, what is decided about it, why it is where it is."""

from __future__ import annotations

from pathlib import Path

import click

from reactor.cli.options import server_option, settings_option


@click.command()
@click.argument("pod")
@click.option("-n", "--namespace", default="default", show_default=True)
@click.option("-f", "--filename", "files", multiple=True, help="Explain from a dump instead of a running controller.")
@settings_option
@click.option("--scheduler-name", help="With -f: explain as if pods with this schedulerName were ours.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@server_option
def explain(
    pod: str,
    namespace: str,
    files: tuple[str, ...],
    settings_file: Path | None,
    scheduler_name: str | None,
    output: str,
    server: str,
) -> None:
    """A pod's happiness with the counts it came from, the decision, and why this node and not the others.

    POD is a name (with -n NAMESPACE) or NAMESPACE/NAME.
    """
    from reactor.cli.explaining import from_files, from_server, render, render_json
    from reactor.cli.planning_session import settings_for

    space, slash, name = pod.rpartition("/")
    wanted = (space if slash else namespace, name)
    if files:
        view = from_files(wanted, files, settings_for(settings_file, scheduler_name))
    else:
        view = from_server(wanted, server)
    click.echo(render_json(view) if output == "json" else render(view))
