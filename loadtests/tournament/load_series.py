"""Measured load series that come with the lab: an excerpt, with its origin and licence in its first lines."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np

from loadtests.tournament.queues import Floats

FOLDER = Path(__file__).parent / "series"


@cache
def read_series(name: str) -> tuple[Floats, ...]:
    """Lines `series,value` in the order of time; lines that begin with `#` say where they are from."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as lines:
        for row in csv.reader(line for line in lines if not line.startswith("#")):
            found[row[0]].append(float(row[1]))
    return tuple(np.array(values) for values in found.values())
