"""Who balances: nobody, KSE's two algorithms, our planner in KSE's loop, and Rematch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loadtests.experiments.kse.design import INTERVAL
from reactor.settings.model import Settings

SettingsOf = Callable[[str], Mapping[str, Any]]
"""What is set for a metric, beside what all arms have."""
_RATE = {"per10Minutes": 1_000_000, "perDay": 1_000_000}
_AT_ONCE = {
    "execution": {
        "limits": {"cluster": _RATE, "namespace": _RATE, "workload": _RATE},
        "brake": {"movesWithoutEffect": 1_000_000, "failedWrites": 1_000_000},
        "strategies": ["evict"],
        "evictSingleReplicas": True,
        "maxMovesInFlight": 1000,
        "maxMovesInFlightPerNamespace": 1000,
    },
    "decision": {"cooldown": 0, "settle": 0},
}
"""As KSE's loop: every pod of a plan is evicted and bound at once, whatever was moved before."""


@dataclass(frozen=True, slots=True)
class Arm:
    name: str
    text: str
    settings: SettingsOf | None = None
    """None does nothing."""


def simulated_settings(settings: SettingsOf, metric: str) -> Settings:
    """The controller, in a cycle of a minute, with measurements of a minute as by metrics-server."""
    common = {
        "mode": "act",
        "triggers": {"rematchInterval": INTERVAL},
        "metrics": {"metricsApi": {"interval": INTERVAL}},
    }
    return Settings.model_validate({**common, **settings(metric)})


def _published(name: str) -> SettingsOf:
    return lambda metric: {"planner": {"name": name, "parameters": {"metric": metric}, "allowUnsafe": True}, **_AT_ONCE}


def _balance(metric: str) -> Mapping[str, Any]:
    return {"planner": {"name": "balance", "parameters": {"weights": {metric: 1.0}}}}


NONE, GREEDY, REFINE, BALANCE, OURS = "none", "greedy", "refine", "balance", "ours"
ARMS: Mapping[str, Arm] = {
    each.name: each
    for each in (
        Arm(NONE, "the fixed, even first placement; nobody moves a pod"),
        Arm(GREEDY, "KSE's GreedyLB as published, every minute, evictions at once", _published("greedy-published")),
        Arm(REFINE, "KSE's RefineLB as published, every minute, evictions at once", _published("refine-published")),
        Arm(
            BALANCE,
            "our planner balance in KSE's loop: every minute, evictions at once",
            lambda metric: {**_balance(metric), **_AT_ONCE},
        ),
        Arm(
            OURS,
            "Rematch with planner.name balance and triggers.rematchInterval 60s, the rest as shipped:"
            " surges, limits, cooldowns",
            _balance,
        ),
    )
}
