"""What the doctor found, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from reactor.cli.output import table, to_json


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It works, but not all that could work here does."""
    UNKNOWN = "unknown"
    """This user may not look, or it cannot be seen from here."""
    FAILED = "failed"


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    check: str
    state: State
    text: str
    mend: str = ""
    """A command to copy; empty where there is none or none is needed."""


class Report(msgspec.Struct, frozen=True):
    ok: bool
    """Nothing failed."""
    server: str
    findings: tuple[Finding, ...]


def report(server: str, findings: Sequence[Finding]) -> Report:
    return Report(all(found.state is not State.FAILED for found in findings), server, tuple(findings))


def render(found: Report, output: str) -> str:
    if output == "json":
        return to_json(found)
    rows: list[tuple[str, str, str]] = []
    for finding in found.findings:
        rows.append((finding.check, finding.state, finding.text))
        if finding.mend:
            rows.append((" ", " ", f"-> {finding.mend}"))
    return f"{table(('check', 'state', 'what'), rows)}\n\n{_summary(found)}"


def _summary(found: Report) -> str:
    counts = {state: sum(finding.state is state for finding in found.findings) for state in State}
    parts = ", ".join(f"{number} {state}" for state, number in counts.items() if number)
    return f"{parts}; " + ("nothing keeps Rematch from working" if found.ok else "mend the failed ones first")
