"""The arms, the load, the sizes, and what the paper found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadtests.nodes.apps import ITERATIONS_PER_MS, LabApp, ProbeTimes
from loadtests.nodes.spec import LabNodeSpec

Json = dict[str, Any]
NAMESPACE = "hpa"
NODES = tuple(LabNodeSpec(f"node{number}", 500, 2048) for number in (1, 2, 3))
LEAST, MOST = 2, 20
TARGET, LIMIT = 20, 40
"""Millicores of a replica: what the autoscalers aim at, and what it may use."""
WORK_MS = 4.0
"""CPU of one request."""
TOP = 60.0
"""Requests per second to each arm: 12 replicas at their target, half of the paper's 24."""
TIMEOUT = 2.0
STABILIZATION = 60
"""Seconds for which a lower need must last before an autoscaler follows it; the default of 300 would keep the replicas
of one burst for the next."""
CURRENT = "rematch_current_cpu_cores"
"""As Prometheus measures it: the controller of this experiment reads nothing else."""
AHEAD = "rematch_predicted_cpu_cores"
PAPER = {
    "default": {"maximum": 21, "replicas at seconds": {60: 8, 75: 12, 120: 21}},
    "Prometheus-fed": {"maximum": 24},
}


@dataclass(frozen=True, slots=True)
class Arm:
    """`metrics` of its HorizontalPodAutoscaler."""

    name: str
    metrics: tuple[str, ...]
    """External metrics; none: CPU by metrics.k8s.io."""
    title: str


METRICS_API = Arm("metrics-api", (), "metrics.k8s.io")
PROMETHEUS = Arm("prometheus-fed", (CURRENT,), "Prometheus-fed")
PREDICTED = Arm("predicted", (CURRENT, AHEAD), "predicted")
ARMS = (METRICS_API, PROMETHEUS, PREDICTED)


def app_of(arm: Arm) -> LabApp:
    """Its probes go the way of the requests and may wait as long: a pod that has too much to do is not restarted."""
    iterations = str(round(WORK_MS * ITERATIONS_PER_MS))
    return LabApp(
        arm.name,
        cpu=f"{TARGET}m",
        cpu_limit=f"{LIMIT}m",
        environment={"ITERATIONS": iterations, "PROBE_ITERATIONS": "1000", "GOMAXPROCS": "1"},
        probe=ProbeTimes(period=2, timeout=10, failures=30),
        replicas=LEAST,
    )


def autoscaler(arm: Arm) -> Json:
    return {
        "metadata": {"name": arm.name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": arm.name},
            "minReplicas": LEAST,
            "maxReplicas": MOST,
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": STABILIZATION}},
            "metrics": [_external(arm, name) for name in arm.metrics] or [_cpu()],
        },
    }


def _cpu() -> Json:
    return {"type": "Resource", "resource": {"name": "cpu", "target": _target()}}


def _external(arm: Arm, name: str) -> Json:
    labels = {"workload": arm.name} | ({"horizon": "1m"} if name == AHEAD else {})
    metric = {"name": name, "selector": {"matchLabels": labels}}
    return {"type": "External", "external": {"metric": metric, "target": _target()}}


def _target() -> Json:
    return {"type": "AverageValue", "averageValue": f"{TARGET}m"}


def needed(second: float, seconds: float) -> float:
    """Replicas at their target for the load of this second of a burst."""
    rate = TOP * max(0.0, 1 - second / seconds)
    return max(float(LEAST), rate * WORK_MS / TARGET)


def at_second(times: Sequence[float], values: Sequence[int], second: float) -> int | None:
    """The last value until then; None before the first."""
    until = [value for at, value in zip(times, values, strict=True) if at <= second]
    return until[-1] if until else None
