"""Results on disk, a line per run."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import msgspec

from loadtests.record_file import RecordFile
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
        self._file = RecordFile(path, Result)
        self.forget, self.add = self._file.forget, self._file.add

    def read(self, wanted: Iterable[Scenario]) -> dict[tuple[str, int, str], Result]:
        """What is there of these scenarios as they are now."""
        by_name = {scenario.name: scenario for scenario in wanted}
        return {
            result.key: result
            for result in self._file.read()
            if result.scenario in by_name and _is_current(result, by_name[result.scenario])
        }


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
