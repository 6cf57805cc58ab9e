"""Findings that an experiment states itself, in the list `evidence` of its summary.json."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadtests.evidence.claims import Finding, Verdict, Where


def stated(name: str) -> Callable[[Any], Finding | None]:
    """`{"name", "ours", "verdict", "where", "why"}`, with the words of Verdict and Where."""

    def find(summary: Any) -> Finding | None:
        for item in summary.get("evidence", ()):
            if item["name"] == name:
                return Finding(item["ours"], Verdict(item["verdict"]), Where(item["where"]), item.get("why", ""))
        return None

    return find
