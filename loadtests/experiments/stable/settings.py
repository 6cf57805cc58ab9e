"""The controller's settings of a run. A step of the full form is as long as the paper's and nothing is changed.

In the short form all durations shrink with the step, but not below what containers and kubelets physically need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadtests.experiments.stable.apps import NAMESPACE
from loadtests.experiments.stable.design import (
    PAPER,
    PAPER_RAW,
    PAPER_STEP_SECONDS,
    PREDICTIVE,
    RAW_UNITS,
    Arm,
    Pace,
)
from loadtests.nodes.prometheus import queries_over
from reactor.settings.model import DecisionTrigger, Settings

_FLOORS: dict[tuple[str, str], float] = {
    ("happiness", "halfLife"): 5.0,
    ("triggers", "evaluationInterval"): 0.5,
    ("decision", "cooldown"): 4.0,
    ("decision", "settle"): 4.0,
    ("execution", "readyDeadline"): 20.0,
    ("execution", "reservation"): 15.0,
    ("metrics", "freshness"): 12.0,
    ("metrics", "peakWindow"): 20.0,
}
"""Seconds: a container needs 1 to 2 to start, a kubelet's usage figures are some seconds old."""

_RATE = {"per10Minutes": 1_000_000, "perDay": 1_000_000}
UNLIMITED: dict[str, Any] = {
    "limits": {"cluster": _RATE, "namespace": _RATE, "workload": _RATE},
    "brake": {"movesWithoutEffect": 1_000_000, "failedWrites": 1_000_000},
}
"""The paper has neither limits nor brakes."""

_EVERYBODY = 1_000_000
AT_ONCE: dict[str, Any] = {"maxMovesInFlight": _EVERYBODY, "maxMovesInFlightPerNamespace": _EVERYBODY}
"""The paper makes all pods of a rematch pending, then binds them."""

_WINDOW_SECONDS = 10
"""Usage window of the short form: a kubelet that samples every two seconds reports a container about every four."""


def settings_for(arm: Arm, pace: Pace, prometheus: str = "") -> Settings:
    """Our defaults but for the mode, the threshold and the tempo; the paper's planner shows no restraint by itself."""
    return Settings.model_validate(settings_tree(arm, pace, Settings().model_dump(by_alias=True), prometheus))


def settings_tree(arm: Arm, pace: Pace, defaults: Mapping[str, Any], prometheus: str = "") -> dict[str, Any]:
    """What differs from `defaults`, which may be those of another revision."""
    tree = tempo_tree(min(1.0, pace.seconds / PAPER_STEP_SECONDS), defaults, prometheus)
    tree["happiness"]["threshold"] = arm.threshold
    tree["planner"] = {"name": arm.planner_name}
    if arm.planner_name == PAPER:
        units = dict(RAW_UNITS) if arm.planner == PAPER_RAW else {}
        tree["planner"] |= {"allowUnsafe": True, "parameters": {"units": units, "placesPending": False}}
        tree["decision"]["minimumFailures"] = 0.0
        tree["execution"] |= UNLIMITED | AT_ONCE
    if arm.planner == PREDICTIVE:
        tree["decision"]["trigger"] = DecisionTrigger.PREDICTIVE.value
    return tree


def tempo_tree(factor: float, defaults: Mapping[str, Any], prometheus: str = "") -> dict[str, Any]:
    """The controller acts on the experiment's pods, with all durations `factor` times as long as usual."""
    tree: dict[str, Any] = {"mode": "act", "managed": {"namespaces": [NAMESPACE]}}
    for (section, name), floor in _FLOORS.items():
        if name not in defaults[section]:
            continue
        usual = float(defaults[section][name])
        tree.setdefault(section, {})[name] = usual if factor >= 1 else max(floor, usual * factor)
    interval = 15.0 if factor >= 1 else 2.0
    tree["metrics"]["metricsApi"] = {"interval": interval}
    if prometheus:
        known = defaults["metrics"]["prometheus"]["queries"]
        short = {name: query for name, query in queries_over(_WINDOW_SECONDS).items() if name in known}
        queries = {} if factor >= 1 else short
        tree["metrics"]["prometheus"] = {"url": prometheus, "interval": interval, "queries": queries}
    return tree
