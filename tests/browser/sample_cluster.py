"""The sample cluster: three workers, 15 web apps, some of them unhappy, some names hostile."""

from __future__ import annotations

import math

import numpy as np

from matching.failure_curve import FailureCurve
from reactor.record.calibration_summary import summarize
from reactor.record.move_checks import CheckedMoves
from reactor.state.calibration import BIN_WIDTH, BINS, COLUMNS, PRIOR, Calibration, fitted_curve
from reactor.web.calibration_page import calibration_view
from reactor.web.view import (
    CalibrationView,
    Gauge,
    NodeSeries,
    NodeView,
    Overview,
    PodChip,
    PowerView,
    Series,
    SettingsView,
)

AT = 1_763_265_600.0
GIB = 2.0**30
HOSTILE = "<img src=x onerror=alert(1)>"
THRESHOLD = 0.8

CAPACITY = {"worker-1": (12.0, 12 * GIB), "worker-2": (5.0, 8 * GIB), "worker-3": (8.0, 16 * GIB)}
CPU_LOAD = {"worker-1": 0.41, "worker-2": 0.97, "worker-3": 0.33}
MEMORY_LOAD = {"worker-1": 0.35, "worker-2": 0.62, "worker-3": 0.24}
HAPPINESS = {"web-04": 0.31, "web-07": 0.58, "web-11": 0.74, "web-02": 0.86, "web-09": 0.84}
PLACES = ("worker-1", "worker-2", "worker-3", "worker-2", "worker-1")


def pod_name(number: int) -> str:
    suffix = "bcdfghjklmnpqrs"[number - 1]
    return f"web-{number:02d}-6c9f8d7b5{suffix}-x{number}k4{suffix}"


def chip(number: int) -> PodChip:
    happiness = HAPPINESS.get(f"web-{number:02d}", 0.93 + (number % 7) / 100)
    return PodChip(
        uid=f"uid-{number:02d}",
        key=f"shop/{pod_name(number)}",
        happiness=happiness,
        threshold=THRESHOLD,
        happy=happiness >= THRESHOLD,
        ready=number != 4,
        cpu=0.1 + 0.11 * number,
    )


def node_of(number: int) -> str:
    return "worker-2" if f"web-{number:02d}" in HAPPINESS else PLACES[number % len(PLACES)]


def _others(name: str) -> tuple[PodChip, ...]:
    agent = PodChip(
        uid=f"agent-{name}",
        key=f"kube-system/agent-{name}",
        happiness=None,
        threshold=THRESHOLD,
        happy=True,
        managed=False,
        cpu=0.02,
        fixed="owned by a DaemonSet",
    )
    if name != "worker-3":
        return (agent,)
    hostile = PodChip(
        uid="hostile", key=f"shop/{HOSTILE}", happiness=0.91, threshold=THRESHOLD, happy=True, cpu=0.4, fixed=HOSTILE
    )
    return (agent, hostile)


def node(name: str, step: int) -> NodeView:
    cores, memory = CAPACITY[name]
    swing = 0.02 * math.sin(step / 4)
    chips = tuple(chip(number) for number in range(1, 16) if node_of(number) == name)
    return NodeView(
        name=name,
        ready=True,
        unschedulable=False,
        cpu=Gauge(used=cores * (CPU_LOAD[name] + swing), capacity=cores, unit="cores", requested=cores * 0.5),
        memory=Gauge(used=memory * MEMORY_LOAD[name], capacity=memory, unit="bytes", requested=memory * 0.3),
        pods=tuple(sorted(chips + _others(name), key=lambda pod: pod.key)),
    )


def overview(step: int) -> Overview:
    waiting = PodChip(
        uid="pending",
        key="shop/report-0",
        happiness=None,
        threshold=THRESHOLD,
        happy=True,
        ready=False,
        phase="Pending",
        fixed="requests 14 cores; no node has more than 12",
    )
    return Overview(
        title="embedded",
        mode="act",
        synced=True,
        halted=None,
        planner="stable",
        threshold=THRESHOLD,
        at=AT + step,
        cycles=40 + step,
        rematches=3,
        moves=5,
        settings=SettingsView(digest="9f2c41aa", source="ConfigMap rematch/rematch-settings"),
        problems=(),
        nodes=tuple(node(name, step) for name in CAPACITY),
        pending=(waiting,),
        power=PowerView(412.4, 1, 48.0, 1, plan_before=431.0, plan_after=396.0, plan_idle_nodes=2),
    )


def series(step: int) -> Series:
    """Ten minutes by 5 s: load rises, the weak node overruns, two rematches bring availability back."""
    times = tuple(AT + step - 600 + 5 * index for index in range(120))
    load = tuple(max(0.0, math.sin((index - 25) / 95 * 2.2 * math.pi)) for index in range(120))
    wave = tuple(math.sin(index * 1.7) for index in range(120))
    availability = tuple(None if i < 4 else min(1.0, 0.999 - 0.13 * c + 0.004 * w) for i, (c, w) in _pairs(load, wave))
    return Series(
        times=times,
        availability=availability,
        latency_p95=tuple(None if i < 4 else 0.042 + 0.5 * c + 0.006 * w for i, (c, w) in _pairs(load, wave)),
        happiness_min=tuple(0.97 - 0.66 * c + 0.01 * w for c, w in zip(load, wave, strict=True)),
        happiness_mean=tuple(0.985 - 0.2 * c + 0.003 * w for c, w in zip(load, wave, strict=True)),
        nodes=tuple(
            NodeSeries(
                name=name,
                cpu=tuple(CPU_LOAD[name] * (0.55 + 0.45 * c) + 0.015 * w for c, w in zip(load, wave, strict=True)),
                memory=tuple(MEMORY_LOAD[name] * (0.9 + 0.1 * c) for c in load),
            )
            for name in CAPACITY
        ),
        rematches=(times[38], times[95]),
    )


def _pairs(left: tuple[float, ...], right: tuple[float, ...]) -> enumerate[tuple[float, float]]:
    return enumerate(zip(left, right, strict=True))


def calibration() -> CalibrationView:
    """A day in which the curve learned that nodes fail from 90 % on, earlier than the prior says."""
    table, true = np.zeros((BINS, COLUMNS)), FailureCurve(0.002, 0.5, 0.92, 0.03)
    for at in range(4, 21):
        load, probes = (at + 0.5) * BIN_WIDTH, 40_000.0 / (1 + abs(at - 10))
        expected = PRIOR.probability(load) * 0.3 + true.probability(load) * 0.7
        table[at] = probes, probes * true.probability(load), probes * load, probes * expected
    checked = CheckedMoves(moves=12, helped=11, expected=0.004, observed=0.003)
    learned = Calibration()
    learned.add(table, AT)
    return calibration_view(table, fitted_curve(table), summarize(learned.predicted_failures(), checked))
