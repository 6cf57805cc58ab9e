"""Which scenarios are run on real nodes, and how they are scaled to one machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loadtests.experiments.kse.arms import SettingsOf
from loadtests.experiments.kse.design import CORES, FIRST_ACTION, INTERVAL, NODES, Scenario, scenarios
from loadtests.experiments.stable.settings import tempo_tree
from loadtests.nodes.apps import AppKind, LabApp
from loadtests.nodes.spec import LabNodeSpec
from reactor.settings.model import Settings

SUBSET = tuple(
    each
    for each in scenarios(["synthetic"])
    if (each.pods, each.rate, each.metric) == (20, "constant", "cpu")
)  # fmt: skip
"""The lab's memory app holds the same under any load, so memory cannot be balanced by load here."""
NODE_SCALE = 10
"""KSE's cores by ours."""
TIME_SCALE = 6
"""KSE's seconds by ours. As many times the requests per second, each as many times cheaper: as many between two plans,
so measurements are as noisy as KSE's."""
PLAN_SECONDS = INTERVAL / TIME_SCALE
"""Between two plans, and between two snapshots."""
CONTROLLER_AT = (FIRST_ACTION - INTERVAL) / TIME_SCALE
"""Second of the load: its first plan comes after one interval."""
METRICS_SECONDS = 3.0
"""Between two samples of metrics.k8s.io. A pod is measured from its second one on."""
SNAPSHOTS = 7
LOAD_SECONDS = SNAPSHOTS * PLAN_SECONDS
TIMEOUT = 60.0 / TIME_SCALE
"""k6's own is a minute."""
LAB_NODES = tuple(LabNodeSpec(name, round(CORES * 1000 / NODE_SCALE)) for name in NODES)
_DRAIN_SECONDS = 2.0
"""kube-proxy of this lab learns at once that an endpoint is gone; usually 5."""
_LOOPS_PER_MS = 7000
"""Of the counter app, on the machine this was measured on."""
_OWN_MS = 0.4
"""CPU of a request beside the loop."""


def lab_apps(scenario: Scenario) -> list[LabApp]:
    wanted_ms = scenario.model.cpu_seconds * 1000 / NODE_SCALE / TIME_SCALE
    environment = {"OUTER": str(round((wanted_ms - _OWN_MS) * _LOOPS_PER_MS)), "GOMAXPROCS": "1"}
    return [LabApp(name, AppKind.COUNTER, cpu="2m", memory="16Mi", environment=environment) for name in scenario.apps()]


def requests_of(scenario: Scenario, repeat: int) -> list[str]:
    """The app of each request, drawn one by one as by KSE's scripts; the same for every arm."""
    draw = np.random.default_rng((repeat, *scenario.name.encode()))
    number = round(scenario.target * TIME_SCALE * LOAD_SECONDS)
    return [str(app) for app in draw.choice(scenario.apps(), size=number, p=scenario.shares())]


def real_settings(settings: SettingsOf, metric: str, prometheus: str) -> Settings:
    """As in simulated time, with all durations scaled, but not below what containers and kubelets need. The CPU of pods
    comes from metrics.k8s.io, as KSE's does: Prometheus' average would leave a moved pod unknown to the next plan."""
    tree = tempo_tree(1 / TIME_SCALE, Settings().model_dump(by_alias=True), prometheus)
    tree["metrics"]["prometheus"]["queries"]["podCpu"] = ""
    paced = {"triggers": {"rematchInterval": PLAN_SECONDS}, "execution": {"drainDelay": _DRAIN_SECONDS}}
    return Settings.model_validate(_joined(_joined(tree, paced), settings(metric)))


def _joined(tree: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """By section; what the other says counts."""
    return {**tree, **{section: {**tree.get(section, {}), **values} for section, values in other.items()}}
