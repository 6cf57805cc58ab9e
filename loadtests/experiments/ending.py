"""How every experiment ends: its report, of everything or of what there is, and a copy of a whole one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from loadtests.report_page import copy_report


@dataclass(frozen=True, slots=True)
class Ending:
    folder: Path
    copy_to: Path | None
    data: Sequence[str]
    """Files beside the page."""

    def report(self, write: Callable[[bool], Path], *, stopped: bool) -> None:
        """`write` is told whether the report is a partial one, and returns its path."""
        if stopped:
            click.echo("\nstopped; what was measured so far is kept, --resume goes on from there", err=True)
        page = write(stopped)
        click.echo(f"{'partial report, of what was measured so far' if stopped else 'report'}: {page}")
        if self.copy_to is not None and not stopped:
            copy_report(self.folder, self.copy_to, self.data)
            click.echo(f"copied to {self.copy_to}")
