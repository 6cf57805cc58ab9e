"""Samples the load of autoscaled workloads after each round of measurements, for their load one minute ahead."""

from __future__ import annotations

from collections.abc import Callable

from reactor.clock import Clock
from reactor.cluster.view import ClusterView
from reactor.settings.model import Settings
from reactor.state.live_state import State

_PODS_OF = {"Deployment": "ReplicaSet"}
"""A Deployment's usage is recorded by the kind of its pods' owner."""


class LoadSampling:
    def __init__(self, state: State, settings: Callable[[], Settings], clock: Clock) -> None:
        self._state = state
        self._settings = settings
        self._clock = clock

    async def sample(self) -> None:
        if not self._settings().forecasting.enabled:
            return
        now = self._clock.now()
        scaled = _autoscaled(self._state.cluster())
        if scaled:
            loads = self._state.usage.freeze(now).by_workload()
            self._state.load_ahead.add(now, {name: loads[name][0] for name in scaled & loads.keys()})


def _autoscaled(cluster: ClusterView) -> set[str]:
    """Of every HorizontalPodAutoscaler, KEDA's included."""
    return {
        f"{each.namespace}/{_PODS_OF.get(each.target_kind, each.target_kind)}/{each.target_name}"
        for each in cluster.hpas
    }
