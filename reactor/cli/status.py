"""`rematch status`: what a running controller sees and does now."""

from __future__ import annotations

import click

from reactor.cli.options import server_option


@click.command()
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@server_option
def status(output: str, server: str) -> None:
    """Mode, nodes with their use, unhappy pods, and what is wrong."""
    import msgspec

    from reactor.cli.client import ask
    from reactor.cli.showing import render_status
    from reactor.errors import InputError
    from reactor.web.view import Overview

    overview = ask(server, "overview", Overview, nodes="5000", chips="1000")
    if overview is None:
        raise InputError(f"{server} is no Rematch controller: it has no /api/v1/overview")
    click.echo(msgspec.json.encode(overview).decode() if output == "json" else render_status(overview))
