"""`rematch`: every command is imported only when it is called, so that --help answers at once."""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import entry_points

import click

from matching.problem import ProblemError
from reactor.errors import RematchError
from storage import StorageError

BAD_INPUT = 2

_COMMANDS = {
    "run": ("reactor.cli.run:run", "The controller: in-cluster by service account, else by kubeconfig."),
    "plan": ("reactor.cli.plan:plan", "One plan, from the live cluster or from files (-f)."),
    "explain": ("reactor.cli.explain:explain", "A pod's happiness, its evidence, and why it is where it is."),
    "status": ("reactor.cli.status:status", "What is happening now."),
    "history": ("reactor.cli.history:history", "What happened: decisions, plans, moves, settings."),
    "config": ("reactor.cli.config:config", "Check and show settings."),
}


class LazyGroup(click.Group):
    """Commands of ours by name, and those that other packages register as `rematch.commands`."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [*_COMMANDS, *sorted(point.name for point in entry_points(group="rematch.commands"))]

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        target = _COMMANDS.get(name)
        if target is not None:
            return _load(target[0])
        for point in entry_points(group="rematch.commands", name=name):
            command = point.load()
            if not isinstance(command, click.Command):
                raise click.ClickException(f"entry point {point.value} of rematch.commands is not a click command")
            return command
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self._short_help(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _short_help(self, ctx: click.Context, name: str) -> str:
        """Ours are known without importing them; a foreign command that cannot be imported must not break --help."""
        if name in _COMMANDS:
            return _COMMANDS[name][1]
        try:
            command = self.get_command(ctx, name)
        except (ImportError, AttributeError, click.ClickException) as error:
            return f"(cannot be loaded: {error})"
        return command.get_short_help_str(limit=90) if command is not None else ""


def _load(target: str) -> click.Command:
    module, _, name = target.partition(":")
    command = getattr(importlib.import_module(module), name)
    assert isinstance(command, click.Command)
    return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rematch", prog_name="rematch")
def cli() -> None:
    """Rematch: a failing liveness probe becomes a better placement.

    Watches liveness probes and usage, keeps for every pod a probability of being happy on its node, and when one falls
    below the threshold re-matches pods to nodes by stable matching.
    """


def main() -> None:
    """One clear line and a fitting exit code for whatever goes wrong on purpose; a traceback is always a bug."""
    try:
        cli(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except (RematchError, ProblemError, StorageError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(BAD_INPUT)
    except BrokenPipeError:
        sys.exit(0)
