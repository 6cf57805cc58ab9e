"""A figure or table of a source, and what our result files say about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from loadtests.evidence.result_files import ResultFiles


class Verdict(StrEnum):
    REPRODUCED = "reproduced"
    BETTER = "better"
    DIFFERS = "differs"
    NOT_COMPARED = "shown, not compared"
    """There are figures of ours, and none of the source to hold them against."""
    NOT_SHOWN = "not shown"
    RULED_OUT = "ruled out"


class Where(StrEnum):
    REAL_NODES = "real nodes"
    CONTROL_PLANE = "real control plane, imitated nodes"
    SIMULATION = "simulated time"
    COMPUTED = "computed, no cluster"
    """By the planner alone, or from data that a source published."""
    NOWHERE = "not at all"


@dataclass(frozen=True, slots=True)
class Finding:
    ours: str
    verdict: Verdict
    where: Where
    why: str = ""
    """Where the verdict needs one: why it differs, or what is to be known about it."""


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    paper: str
    finding: Finding
    command: str
    """That made the file; both are empty where nothing was found."""
    file: str


@dataclass(frozen=True, slots=True)
class Claim:
    """`find` gets what is in `file` (a path below docs/), and says None where the file does not have it."""

    name: str
    """Of the source, such as Fig. 7."""
    paper: str
    """What it shows there."""
    file: str = ""
    command: str = ""
    find: Callable[[Any], Finding | None] | None = None
    missing: str = ""
    """Why there is nothing, where that is known."""
    ruled_out: bool = False
    """It is none of the controller's business, for the reason in `missing`."""

    def row(self, files: ResultFiles) -> Row:
        content = files.read(self.file) if self.file else None
        found = self.find(content) if self.find is not None and content is not None else None
        if found is not None:
            return Row(self.name, self.paper, found, self.command, self.file)
        return Row(self.name, self.paper, self._nothing(there=content is not None), "", "")

    def _nothing(self, *, there: bool) -> Finding:
        why = self.missing or (f"{self.file} does not have it" if there else f"there is no {self.file}")
        return Finding("", Verdict.RULED_OUT if self.ruled_out else Verdict.NOT_SHOWN, Where.NOWHERE, why)


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    """As in the other pages."""
    title: str
    page: str
    """Of docs/, with the experiment in full."""
    claims: Sequence[Claim]


def judged(reproduced: bool) -> Verdict:
    return Verdict.REPRODUCED if reproduced else Verdict.DIFFERS
