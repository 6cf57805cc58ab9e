"""`rematch config`: check, show and describe settings. Slow imports are in the functions that need them."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from reactor.settings.model import Settings

STDIN = "-"
_STDIN_NAME = "stdin"
BAD_SETTINGS = 2


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`problems` and `warnings` are (path, message). There are no problems if the settings are valid."""

    file: str
    problems: tuple[tuple[str, str], ...]
    warnings: tuple[tuple[str, str], ...] = ()

    def lines(self) -> list[str]:
        if not self.problems:
            return [f"{self.file}: ok", *(_line(self.file, "warning", *warning) for warning in self.warnings)]
        return [_line(self.file, *problem) for problem in self.problems]

    def document(self) -> dict[str, object]:
        errors, warnings = (
            [{"path": path, "message": message} for path, message in found] for found in (self.problems, self.warnings)
        )
        return {"file": self.file, "ok": not self.problems, "errors": errors, "warnings": warnings}


def _line(*parts: str) -> str:
    return ": ".join(filter(None, parts))


@click.group()
def config() -> None:
    """Check and show settings."""


@config.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check(files: tuple[str, ...], output: str) -> None:
    """Check settings files and print every error, and warnings of what is valid but hardly meant.

    FILE is YAML or JSON: a settings document, or the manifest of a ConfigMap that holds one. "-" reads stdin. The exit
    code is 0 if all are valid, else 2.
    """
    results = [_check(file) for file in files]
    if output == "json":
        click.echo(json.dumps([result.document() for result in results], indent=2))
    else:
        for result in results:
            click.echo("\n".join(result.lines()))
    if any(result.problems for result in results):
        sys.exit(BAD_SETTINGS)


@config.command()
@click.argument("file", required=False)
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def show(file: str | None, output: str) -> None:
    """Print the settings of FILE ("-" for stdin) with every default, or the defaults."""
    from reactor.errors import SettingsError
    from reactor.settings.load import dump_settings
    from reactor.settings.model import Settings

    try:
        settings = Settings() if file is None else _read(file)
    except SettingsError as error:
        for line in CheckResult(error.source, tuple(error.problems)).lines():
            click.echo(line, err=True)
        sys.exit(BAD_SETTINGS)
    if output == "json":
        click.echo(settings.model_dump_json(by_alias=True, indent=2))
    else:
        click.echo(dump_settings(settings), nl=False)


@config.command()
def schema() -> None:
    """Print the JSON schema of the settings, for editors and validators."""
    from reactor.settings.model import Settings

    click.echo(json.dumps(Settings.model_json_schema(), indent=2))


@config.command()
def reference() -> None:
    """Print docs/settings.md: every setting with its default and what it does."""
    from reactor.settings.reference import reference

    click.echo(reference(), nl=False)


def _check(file: str) -> CheckResult:
    from reactor.errors import SettingsError
    from reactor.settings.warnings import warnings_of

    try:
        settings = _read(file)
    except SettingsError as error:
        return CheckResult(error.source, tuple(error.problems))
    return CheckResult(_STDIN_NAME if file == STDIN else file, (), tuple(warnings_of(settings)))


def _read(file: str) -> Settings:
    from reactor.errors import SettingsError
    from reactor.settings.document import read_file
    from reactor.settings.load import parse_settings

    if file != STDIN:
        return parse_settings(read_file(Path(file)), file)
    try:
        return parse_settings(sys.stdin.buffer.read().decode(), _STDIN_NAME)
    except UnicodeDecodeError as error:
        raise SettingsError([("", f"is not UTF-8 text (byte {error.start})")], _STDIN_NAME) from None
