"""Runs in the other environment, where `matching` is the package of PyPI: games as JSON in, matchings as JSON out."""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any


def solve(game: dict[str, Any]) -> dict[str, Any]:
    games = importlib.import_module("matching.games")
    begin = time.perf_counter()
    instance = games.HospitalResident.create_from_dictionaries(game["residents"], game["hospitals"], game["seats"])
    matching = instance.solve(optimal="resident")
    seconds = time.perf_counter() - begin
    return {
        "seconds": seconds,
        "matching": {hospital.name: sorted(one.name for one in matched) for hospital, matched in matching.items()},
    }


if __name__ == "__main__":
    print(json.dumps([solve(game) for game in json.load(sys.stdin)]))
