"""LATENCY's tests: what its experiment states."""

from __future__ import annotations

from loadtests.evidence.claims import Claim, Source
from loadtests.evidence.stated import stated

_FILE = "experiment-latency/summary.json"
_COMMAND = "rematch lab experiment latency"
_TESTS = {
    "test 1": "targets on nodes 6 and 8, probe on 7: both reach the optimum, nodes 1 and 2",
    "test 2": "targets on nodes 2 and 6, probe on 5: both reach nodes 1 and 2",
    "test 3": "targets on nodes 4 and 8, probe on 6: nodes 1 and 2, then 1 and 8 when node 8 gets fast",
    "interruptions": "no interruption in any test",
}

SOURCE = Source(
    "LATENCY",
    "latency-aware scheduler for the edge (Ziosi 2024)",
    "latency.md",
    tuple(
        Claim(name.capitalize(), paper, _FILE, _COMMAND, stated(name)) for name, paper in _TESTS.items()
    ),
)  # fmt: skip
