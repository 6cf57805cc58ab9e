"""Options that several commands share, named as kubectl names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    kubeconfig: str | None
    context: str | None


def cluster_options(command: F) -> F:
    command = click.option("--context", help="Context of the kubeconfig.")(command)
    return click.option(
        "--kubeconfig", type=click.Path(), help="Default: service account, KUBECONFIG, ~/.kube/config."
    )(command)


def settings_option(command: F) -> F:
    return click.option(
        "--settings", "settings_file", type=click.Path(path_type=Path), help="Settings file (rematch config schema)."
    )(command)


def server_option(command: F) -> F:
    return click.option(
        "--server",
        default="http://127.0.0.1:8080",
        show_default=True,
        envvar="REMATCH_SERVER",
        help="Where a running controller answers.",
    )(command)
