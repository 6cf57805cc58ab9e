"""Rematch and descheduler as contenders: how each is set up and started. Neither limits its evictions."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from loadtests.benchmarks.cluster_setup import CLIENT_QPS
from loadtests.tools import ensure
from loadtests.tools.descheduler import one_pass, policy_with

REMATCH, DESCHEDULER, DESCHEDULER_AS_SHIPPED = "rematch", "descheduler", "descheduler-as-shipped"
NAMES = (DESCHEDULER_AS_SHIPPED, DESCHEDULER, REMATCH)

MOVES_IN_FLIGHT = 500
DEVIATION_POINTS = 5
"""Per cent of a node below and above the mean from which the descheduler calls a node under- and overutilised."""

REMATCH_SETTINGS: dict[str, Any] = {
    "mode": "act",
    "planner": {"name": "balance", "inertia": 0},
    "execution": {
        "maxMovesInFlight": MOVES_IN_FLIGHT,
        "strategies": ["evict"],
        "evictSingleReplicas": True,
        "limits": {each: {"per10Minutes": 100_000, "perDay": 100_000} for each in ("cluster", "namespace", "workload")},
    },
    "metrics": {"metricsApi": {"enabled": False}},
}


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    scheduler: str
    """Of the pods."""
    command: tuple[str, ...]
    most_cycles: int = 1
    """Maximum number of cycles; the last one makes no move."""


def rematch(folder: Path, kubeconfig: Path) -> Contender:
    settings = folder / "settings.yaml"
    settings.write_text(yaml.safe_dump(REMATCH_SETTINGS))
    entry = (sys.executable, "-c", "from reactor.cli.main import main; main()")
    options = ("--kubeconfig", str(kubeconfig), "--settings", str(settings), "--needs", "requests")
    store = ("--store", str(folder / "rematch.db"))
    return Contender(REMATCH, "rematch", (*entry, "plan", "--apply", "--yes", *options, *store))


async def descheduler(folder: Path, kubeconfig: Path, *, as_shipped: bool) -> Contender:
    """Its own default lets 5 requests per second pass; otherwise it gets the limit of everybody else here."""
    programs = await ensure(["descheduler"])
    command = one_pass(programs["descheduler"], kubeconfig, folder / "policy.yaml", _policy())
    if not as_shipped:
        command += (f"--client-connection-qps={CLIENT_QPS}", f"--client-connection-burst={2 * CLIENT_QPS}")
    name = DESCHEDULER_AS_SHIPPED if as_shipped else DESCHEDULER
    return Contender(name, "default-scheduler", command, most_cycles=5)


async def contender(name: str, folder: Path, kubeconfig: Path) -> Contender:
    if name == REMATCH:
        return rematch(folder, kubeconfig)
    return await descheduler(folder, kubeconfig, as_shipped=name == DESCHEDULER_AS_SHIPPED)


def _policy() -> dict[str, Any]:
    points = dict.fromkeys(("cpu", "memory", "pods"), DEVIATION_POINTS)
    low_node = {"useDeviationThresholds": True, "thresholds": points, "targetThresholds": points}
    return policy_with("LowNodeUtilization", low_node, "balance")
