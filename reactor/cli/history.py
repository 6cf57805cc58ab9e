"""`rematch history`: what happened, from a running controller or from its store."""

from __future__ import annotations

from pathlib import Path

import click

from reactor.cli.options import server_option


@click.command()
@click.option("--store", type=click.Path(path_type=Path, exists=True), help="Read this SQLite file instead of asking.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("--waits/--no-waits", default=False, help="Also decisions to wait.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@server_option
def history(store: Path | None, limit: int, waits: bool, output: str, server: str) -> None:
    """Decisions, plans and moves, newest first."""
    import msgspec

    from reactor.cli.showing import history_from_server, history_from_store, render_history

    rows = history_from_store(store, limit, waits=waits) if store else history_from_server(server, limit, waits=waits)
    click.echo(msgspec.json.encode(rows).decode() if output == "json" else render_history(rows))
