"""The policies that play: who they are, and what each does with a model of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from loadtests.simulation.controller import SimulatedController
from loadtests.tournament.clairvoyant import Clairvoyant
from loadtests.tournament.cluster import FluidCluster
from loadtests.tournament.descheduler import DOCUMENTED, FITTING, Descheduler, Thresholds
from loadtests.tournament.watched import WatchedModel
from reactor.errors import InputError
from reactor.settings.load import parse_settings
from reactor.settings.model import Mode, Settings
from reactor.signals.measurements import MetricsSource
from storage.store import Store

LONG = 4 * 3600.0
"""Seconds from which on also measurements are left out while nothing can change."""

_RATE = {"per10Minutes": 1_000_000, "perDay": 1_000_000}
_UNLIMITED = {
    "limits": {"cluster": _RATE, "namespace": _RATE, "workload": _RATE},
    "brake": {"movesWithoutEffect": 1_000_000, "failedWrites": 1_000_000},
}
_EVICTING = {"strategies": ["evict"], "evictSingleReplicas": True}


class Actor(Protocol):
    """A policy in one run."""

    @property
    def cpu_seconds(self) -> float:
        """Of its own work."""
        ...

    async def act(self) -> None:
        """After every step of the model."""
        ...


Play = Callable[[FluidCluster, Store], Actor]


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    text: str
    """One sentence for the report."""
    play: Play
    binds: bool = False
    """Whether it places pending pods itself; else kube-scheduler's scores do."""
    bound: bool = False
    """It knows what nobody can know: a bound, not a rival."""
    follows_ours: bool = False
    """It may make as many moves as ours made."""


class LeftAlone:
    cpu_seconds = 0.0

    async def act(self) -> None:
        return None


class Controlled:
    """The real controller on the model's clock."""

    def __init__(
        self,
        cluster: FluidCluster,
        settings: Settings,
        store: Store,
        source: MetricsSource = MetricsSource.PROMETHEUS,
    ) -> None:
        window = settings.metrics.metrics_api.interval
        watched, long = WatchedModel(cluster), cluster.instance.seconds >= LONG
        self._controller = SimulatedController(
            watched, settings, store, window, skip_quiet=True, skip_measuring=long, source=source
        )
        self.cpu_seconds = 0.0

    async def act(self) -> None:
        if not self._controller.may_be_due:
            return
        began = time.process_time()
        await self._controller.step_if_due()
        self.cpu_seconds += time.process_time() - began


def controlled(name: str, text: str, tree: Mapping[str, Any] | None = None) -> Policy:
    """The controller with the default settings, but for what `tree` says."""
    return _with_settings(name, text, Settings.model_validate({"mode": "act", **(tree or {})}))


def _with_settings(name: str, text: str, settings: Settings) -> Policy:
    return Policy(name, text, lambda cluster, store: Controlled(cluster, settings, store), binds=True)


def _descheduler(name: str, text: str, thresholds: Thresholds, interval: float) -> Policy:
    return Policy(
        name,
        f"descheduler, LowNodeUtilization on usage: {text}; evictions, kube-scheduler places",
        lambda cluster, _store: Descheduler(cluster, thresholds, interval),
    )


OURS = "ours"
LEFT_ALONE = "left alone"
AS_MANY = "clairvoyant as many"


def policies(moves: int | None = None) -> dict[str, Policy]:
    """By name, in the order of the report. `moves`: how many ours made, for those that may make as many."""
    every = (
        Policy(LEFT_ALONE, "kube-scheduler's placement, nobody moves a pod", lambda _cluster, _store: LeftAlone()),
        controlled(OURS, "Rematch as shipped"),
        controlled(
            "ours predictive",
            "Rematch that moves before probes fail, by the trend of its nodes",
            {"decision": {"trigger": "predictive"}},
        ),
        *(
            controlled(f"stable {scope}", f"Rematch with planner.scope {scope}", {"planner": {"scope": scope}})
            for scope in ("cluster", "affected", "unhappy")
        ),
        controlled(
            "stable-paper",
            "STABLE by the letter: no gates, no limits, evictions",
            {
                "planner": {"name": "stable-paper", "allowUnsafe": True},
                "decision": {"minimumFailures": 0.0},
                "execution": {**_UNLIMITED, **_EVICTING},
            },
        ),
        *(
            controlled(
                f"{name} 60 s",
                f"KSE's {name} every 60 s, evictions",
                {
                    "planner": {"name": name},
                    "triggers": {"rematchInterval": 60},
                    "execution": {**_UNLIMITED, **_EVICTING},
                },
            )
            for name in ("greedy", "refine")
        ),
        controlled("balance", "Rematch with the planner balance", {"planner": {"name": "balance"}}),
        _descheduler("descheduler 60 s", "documented thresholds, every 60 s", DOCUMENTED, 60.0),
        _descheduler("descheduler 5 min", "documented thresholds, every 5 minutes as it ships", DOCUMENTED, 300.0),
        _descheduler("descheduler fitted", "thresholds that fit this load, every 60 s", FITTING, 60.0),
        Policy(
            "clairvoyant",
            "knows the load to come, moves by surge",
            lambda cluster, _store: Clairvoyant(cluster),
            bound=True,
        ),
        Policy(
            AS_MANY,
            "the same with at most as many moves as ours made",
            lambda cluster, _store: Clairvoyant(cluster, moves or 0),
            bound=True,
            follows_ours=True,
        ),
    )
    return {policy.name: policy for policy in every}


def find_policy(name: str, moves: int | None = None) -> Policy:
    """One of `policies`, or Rematch with the settings of a file."""
    if is_settings_file(name):
        return _from_file(name)
    every = policies(moves)
    if name not in every:
        raise InputError(f"policy {name!r} is not known; known are {', '.join(every)}, or give a settings file (.yaml)")
    return every[name]


def is_settings_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def _from_file(name: str) -> Policy:
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"policy {name}: {error}") from error
    settings = parse_settings(text, name).model_copy(update={"mode": Mode.ACT})
    return _with_settings(name, f"Rematch with the settings of {name}", settings)
