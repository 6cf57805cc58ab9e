"""`rematch`: the entry point. It turns our errors into one line and an exit code."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import click

from matching.problem import ProblemError
from reactor.cli import commands
from reactor.cli.config import config
from reactor.cli.latency import latency_client, latency_server
from reactor.errors import RematchError
from storage import StorageError

BAD_INPUT = 2

_LAB = ("demo", "lab")
"""Commands of the distribution rematch-lab. Without it they are not listed."""
_OURS = (
    commands.run,
    commands.extender,
    latency_server,
    latency_client,
    commands.plan,
    commands.explain,
    commands.status,
    commands.top,
    commands.history,
    commands.tune,
    commands.doctor,
    commands.pause,
    commands.resume,
    commands.move,
    commands.apply,
    commands.backup,
    commands.restore,
    commands.release,
    config,
)


class CommandGroup(click.Group):
    """Our commands, and those that other packages register as `rematch.commands`."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [*self.commands, *sorted(point.name for point in entry_points(group="rematch.commands"))]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        ours = super().get_command(ctx, name)
        if ours is not None:
            return ours
        for point in entry_points(group="rematch.commands", name=name):
            command = point.load()
            if not isinstance(command, click.Command):
                raise click.ClickException(f"entry point {point.value} of rematch.commands is not a click command")
            return command
        if name in _LAB:
            how = "pip install 'rematch[lab]', or make setup in a clone of the repository"
            raise click.ClickException(f"rematch {name} belongs to the lab, which is not installed: {how}")
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self._short_help(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _short_help(self, ctx: click.Context, name: str) -> str:
        """A command of another package that cannot be imported must not break --help."""
        try:
            command = self.get_command(ctx, name)
        except (ImportError, AttributeError, click.ClickException) as error:
            return f"(cannot be loaded: {error})"
        return command.get_short_help_str(limit=90) if command is not None else ""


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rematch", prog_name="rematch")
def cli() -> None:
    """Rematch: a failing liveness probe becomes a better placement.

    Watches liveness probes and usage, keeps for every pod a probability of being happy on its node, and when one falls
    below the threshold re-matches pods to nodes by stable matching.
    """


for _command in _OURS:
    cli.add_command(_command)


def main() -> None:
    """Expected errors are one line and an exit code. A traceback is always a bug."""
    try:
        code = cli(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (RematchError, ProblemError, StorageError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(BAD_INPUT)
    except BrokenPipeError:
        sys.exit(0)
    else:
        if isinstance(code, int):  # click returns what a command gave to Exit
            sys.exit(code)
