"""Results on disk: a line per run, so that an interrupted tournament loses nothing."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import msgspec

from loadtests.tournament.measures import Measures
from loadtests.tournament.policies import is_settings_file
from loadtests.tournament.scenario import Scenario


class Result(msgspec.Struct, frozen=True):
    scenario: str
    seed: int
    policy: str
    digest: str
    """Of the scenario and the settings file: a result of another version of them does not count."""
    measures: Measures

    @property
    def key(self) -> tuple[str, int, str]:
        return (self.scenario, self.seed, self.policy)


def digest_of(scenario: Scenario, policy: str) -> str:
    """Raises OSError for a settings file that is not there."""
    content = Path(policy).read_bytes() if is_settings_file(policy) else b""
    return hashlib.sha256(msgspec.json.encode(scenario) + content).hexdigest()[:12]


class ResultFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, wanted: Iterable[Scenario]) -> dict[tuple[str, int, str], Result]:
        """What is there of these scenarios as they are now. A line that was cut short is left out."""
        by_name = {scenario.name: scenario for scenario in wanted}
        found: dict[tuple[str, int, str], Result] = {}
        if not self._path.exists():
            return found
        for line in self._path.read_bytes().splitlines():
            try:
                result = msgspec.json.decode(line, type=Result)
            except msgspec.DecodeError:
                continue
            scenario = by_name.get(result.scenario)
            if scenario is not None and _is_current(result, scenario):
                found[result.key] = result
        return found

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)

    def add(self, result: Result) -> None:
        """A new line also after one that was cut short."""
        with self._path.open("ab") as file:
            file.write(b"\n" + msgspec.json.encode(result) + b"\n")


def _is_current(result: Result, scenario: Scenario) -> bool:
    try:
        return result.digest == digest_of(scenario, result.policy)
    except OSError:
        return False


def write_csv(path: Path, results: Iterable[Result]) -> None:
    rows = [
        {"scenario": each.scenario, "seed": each.seed, "policy": each.policy, **_flat(each.measures)}
        for each in results
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["scenario"])
        writer.writeheader()
        writer.writerows(rows)


def _flat(measures: Measures) -> dict[str, object]:
    values = asdict(measures)
    values["parts"] = " ".join(f"{part:.4f}" for part in measures.parts)
    return values
