"""Controller and meter as processes of their own, each with the rights of its own account."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from loadtests.controlplane import ControlPlane
from loadtests.controlplane.process import ComponentProcess
from loadtests.demo.controller import ControllerSpec, RunningController, running_controller
from loadtests.experiments.latency.design import QUIET, REQUESTS, Case
from loadtests.experiments.latency.lab import ECHO_NODE_PORT, NAMESPACE
from loadtests.tools.ports import free_ports
from reactor.cluster.connection import DEFAULT_NAMESPACE
from reactor.signals.mqtt import Broker

LOOPBACK = "127.0.0.1"
TOPIC = "rematch/latency"
_METER = "rematch-latency-meter"
"""Its account, as in deploy/latency."""
_LEAST_QUIET = 5.0
_LONGEST_TRIP = 2.5
"""Seconds after which a request of the meter counts as lost, at full delays; the farthest takes 1.6."""
_MANY = 10_000
_SCOPES = ("cluster", "namespace", "workload")


def quiet(pace: float) -> float:
    return max(_LEAST_QUIET, QUIET * pace)


@asynccontextmanager
async def controller(
    plane: ControlPlane, case: Case, broker: Broker, pace: float, folder: Path
) -> AsyncIterator[RunningController]:
    token = await plane.token(DEFAULT_NAMESPACE, "rematch")
    kubeconfig = plane.write_kubeconfig(folder / "controller.kubeconfig", token=token)
    settings = folder / "settings.yaml"
    settings.write_text(yaml.safe_dump(settings_of(case, broker, pace)))
    (port,) = free_ports(LOOPBACK, 1)
    spec = ControllerSpec(kubeconfig, settings, store_of(folder), folder / "controller.log", port)
    async with running_controller(spec) as running:
        yield running


def store_of(folder: Path) -> Path:
    return folder / "rematch.db"


@asynccontextmanager
async def meter(plane: ControlPlane, broker: Broker, pace: float, folder: Path) -> AsyncIterator[None]:
    token = await plane.token(NAMESPACE, _METER)
    kubeconfig = plane.write_kubeconfig(folder / "meter.kubeconfig", token=token)
    program = [sys.executable, "-c", "from reactor.cli.main import main; main()", "latency-client"]
    where = [f"--broker={broker}", f"--topic={TOPIC}", f"--namespace={NAMESPACE}", f"--kubeconfig={kubeconfig}"]
    how = [f"--port={ECHO_NODE_PORT}", f"--requests={REQUESTS}", f"--interval={pace:g}"]
    process = ComponentProcess(
        "latency-client", [*program, *where, *how, f"--timeout={_LONGEST_TRIP * pace:g}"], folder / "meter.log"
    )
    process.start()
    try:
        yield
        process.check()
    finally:
        process.stop()


def settings_of(case: Case, broker: Broker, pace: float) -> dict[str, object]:
    """`pace` shortens the waiting, never the rule."""
    return {
        "apiVersion": "rematch/v1alpha1",
        "mode": "act",
        "managed": {"namespaces": [NAMESPACE]},
        "planner": {
            "name": case.arm.value,
            "parameters": {"measurements": case.targets + 1, "quiet": quiet(pace)},
        },
        "triggers": {"rematchInterval": "1s", "evaluationInterval": "1s"},
        "decision": {"cooldown": "0s", "settle": "0s"},
        "metrics": {"metricsApi": {"interval": "2s"}},
        "latency": {"broker": str(broker), "namespaces": [NAMESPACE]},
        "execution": {
            "maxMovesInFlight": 2,
            "limits": {scope: {"per10Minutes": _MANY, "perDay": _MANY} for scope in _SCOPES},
            "brake": {"movesWithoutEffect": 1000},
        },
    }
