"""Rounds kept as files, so that several runs can be added up, and for whoever looks for the cause of a violation."""

from __future__ import annotations

from pathlib import Path

import msgspec

from loadtests.chaos.rounds import RoundResult


def keep(folder: Path, result: RoundResult) -> None:
    text = msgspec.json.format(msgspec.json.encode(result))
    (folder / f"round-{result.plan.seed}.json").write_bytes(text)


def kept(folder: Path) -> list[RoundResult]:
    """By seed."""
    found = [msgspec.json.decode(file.read_bytes(), type=RoundResult) for file in folder.glob("round-*.json")]
    return sorted(found, key=lambda result: result.plan.seed)
