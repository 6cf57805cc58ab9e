"""Forecasts of all series, step by step. Series are forecast a shard at a time, each shard in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import structlog
from numpy.typing import NDArray

from predictors.forecasting import Forecasting, OtherState, Outlook
from predictors.growth import growth
from predictors.nodes import node_history
from predictors.protocol import Floats, History, State
from reactor.forecasts import learned
from reactor.forecasts.forecasts import HORIZON_MINUTES, AxisForecasts, Forecasts, KindForecasts, MemoryGrowth
from reactor.forecasts.models import Models
from reactor.forecasts.samples import SHARD, Samples
from reactor.forecasts.usage_samples import NEEDED, UsageSamples
from reactor.history.levels import Axis
from reactor.settings.model import PeakSource

log = structlog.get_logger(__name__)

_PODS_AT_ONCE = 4096
"""Of which nodes are summed up."""


@dataclass(frozen=True, slots=True)
class ClusterNow:
    """What the forecasts need to know of the cluster as it is."""

    node_of: Mapping[str, str] = field(default_factory=dict)
    """By pod, `namespace/name`."""
    memory_limits: Mapping[str, float] = field(default_factory=dict)
    """Bytes, of pods whose containers all have a limit."""
    coverages: Mapping[str, float] = field(default_factory=dict)
    """Of pods whose annotation asks for another one."""


class ForecastEngine:
    def __init__(self, samples: UsageSamples, models: Mapping[Axis, Models], estimator: PeakSource) -> None:
        self.samples = samples
        self.models = dict(models)
        self.estimator = estimator
        self._forecasting: dict[str, Forecasting] = {}
        """By the name of its shard."""
        self._learned: dict[str, State] = {}
        """By an earlier process, by kind and axis; until the first step."""
        self._pods_of: dict[str, frozenset[str]] = {}

    def use(self, models: Mapping[Axis, Models]) -> None:
        """Trained anew. What was learned of each series stays: it is about its errors."""
        self.models.update(models)
        for name, forecasting in self._forecasting.items():
            of_axis = self.models.get(_axis_of(name), Models())
            forecasting.models, forecasting.peaks = of_axis.values(), of_axis.peaks(self.estimator)

    def restore(self, documents: Mapping[str, bytes]) -> None:
        """What `saved` returned; what was learned with another estimator, or cannot be read, is left out."""
        for name, document in documents.items():
            estimator, _, of = name.partition("/")
            if estimator == self.estimator:
                try:
                    self._learned[of] = learned.from_bytes(document)
                except OtherState as error:
                    log.warning("what the forecasts had learned is left out", of=name, error=str(error))

    def saved(self) -> dict[str, bytes]:
        """One document for each kind and axis. Takes long: call it in a thread."""
        states: dict[str, list[State]] = {}
        for name, each in self._forecasting.items():
            states.setdefault(f"{self.estimator}/{_kind_and_axis(name)}", []).append(each.state())
        return {name: learned.to_bytes(shards) for name, shards in states.items()}

    async def advance(self, now: ClusterNow, coverage: float) -> Forecasts:
        """After the samples of another step were read."""
        samples = self.samples
        pods = await self._kind("pod", samples.pods, lambda name: now.coverages.get(name, coverage))
        workloads = await self._kind("workload", samples.workloads, lambda _name: coverage)
        nodes = await self._nodes(now, coverage)
        self._learned = {}
        return Forecasts(
            samples.until,
            pods,
            workloads,
            nodes,
            await self._growth(now),
            self.estimator,
            {axis: each.trained_at for axis, each in self.models.items() if each.trained_at is not None},
        )

    async def _kind(self, kind: str, samples: Samples, coverage: Callable[[str], float]) -> KindForecasts:
        axes = {}
        promises = np.array([coverage(name) for name in samples.names])
        for axis in samples.values:
            outlooks = []
            for number, rows in enumerate(samples.shards()):
                history, names = samples.history(axis, rows), samples.names[rows]
                outlooks.append(
                    await asyncio.to_thread(
                        self._outlook, f"{kind}/{axis.label}/{number}", names, history, promises[rows]
                    )
                )
            axes[axis] = _together(outlooks)
        return KindForecasts(samples.known, axes)

    async def _nodes(self, now: ClusterNow, coverage: float) -> KindForecasts:
        """A node is the sum of the pods that are there now."""
        pods_of = self._pods_by_node(now)
        changed = [node for node, pods in pods_of.items() if self._pods_of.get(node) != pods]
        self._pods_of = pods_of
        axes = {}
        names = sorted(pods_of)
        for axis in NEEDED:
            histories = [
                await asyncio.to_thread(self._node_history, axis, group, pods_of) for group in _groups(names, pods_of)
            ]
            outlooks = []
            history = _joined(histories, self.samples.pods.columns)
            for number, begin in enumerate(range(0, len(names), SHARD)):
                name, rows = f"node/{axis.label}/{number}", slice(begin, begin + SHARD)
                if name in self._forecasting:
                    self._forecasting[name].withdraw(changed)
                part = History(history.values[rows], history.step, None if history.cut is None else history.cut[rows])
                promises = np.full(len(names[rows]), coverage)
                outlooks.append(await asyncio.to_thread(self._outlook, name, names[rows], part, promises))
            axes[axis] = _together(outlooks)
        return KindForecasts({name: row for row, name in enumerate(names)}, axes)

    def _pods_by_node(self, now: ClusterNow) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for pod, node in now.node_of.items():
            if pod in self.samples.pods.rows:
                found.setdefault(node, set()).add(pod)
        return {node: frozenset(pods) for node, pods in found.items()}

    def _node_history(self, axis: Axis, nodes: Sequence[str], pods_of: Mapping[str, frozenset[str]]) -> History:
        pods = [(self.samples.pods.rows[pod], at) for at, node in enumerate(nodes) for pod in sorted(pods_of[node])]
        rows, place = (np.array(column, np.intp) for column in zip(*pods, strict=True))
        return node_history(self.samples.pods.history(axis, rows), place, len(nodes))

    def _outlook(self, name: str, keys: Sequence[str], history: History, promises: Floats) -> Outlook:
        forecasting = self._forecasting.get(name)
        if forecasting is None:
            forecasting = self._forecasting[name] = self._new(name)
        return forecasting.advance(keys, history, self.samples.until, promises)

    def _new(self, name: str) -> Forecasting:
        models = self.models.get(_axis_of(name), Models())
        made = Forecasting(models.values(), models.peaks(self.estimator), HORIZON_MINUTES)
        state = self._learned.get(_kind_and_axis(name))
        if state is not None:
            try:
                made.restore(state)
            except OtherState as error:
                log.warning("what the forecasts had learned is left out", of=name, error=str(error))
        return made

    async def _growth(self, now: ClusterNow) -> dict[str, MemoryGrowth]:
        pods, found = self.samples.pods, {}
        for rows in pods.shards():
            names = pods.names[rows]
            limits = np.array([now.memory_limits.get(name, np.nan) for name in names])
            grows = await asyncio.to_thread(growth, pods.history(Axis.MEMORY, rows), limits)
            for at in np.flatnonzero((grows.per_second > 0) & np.isfinite(grows.seconds_to_limit)).tolist():
                found[names[at]] = MemoryGrowth(float(grows.per_second[at]), float(grows.seconds_to_limit[at]))
        return found


def _kind_and_axis(name: str) -> str:
    """Of a shard."""
    return name.rpartition("/")[0]


def _axis_of(name: str) -> Axis:
    return Axis[name.split("/")[1].upper()]


def _groups(nodes: Sequence[str], pods_of: Mapping[str, frozenset[str]]) -> Iterator[list[str]]:
    """Of as many nodes as have a bounded number of pods together."""
    group: list[str] = []
    number = 0
    for node in nodes:
        group.append(node)
        number += len(pods_of[node])
        if number >= _PODS_AT_ONCE:
            yield group
            group, number = [], 0
    if group:
        yield group


def _joined(histories: Sequence[History], columns: int) -> History:
    if not histories:
        return History(np.zeros((0, columns), np.float32), 300.0)
    cuts = [each.cut for each in histories if each.cut is not None]
    cut: NDArray[np.bool_] | None = np.vstack(cuts) if cuts else None
    return History(np.vstack([each.values for each in histories]), histories[0].step, cut)


def _together(outlooks: Sequence[Outlook]) -> AxisForecasts:
    if not outlooks:
        nothing = np.zeros((0, len(HORIZON_MINUTES)))
        return AxisForecasts(nothing, nothing, nothing.astype(np.bool_), np.zeros(0, np.bool_))
    return AxisForecasts(
        np.vstack([each.values for each in outlooks]),
        np.vstack([each.peaks for each in outlooks]),
        np.vstack([each.calibrated for each in outlooks]),
        np.concatenate([each.at_least for each in outlooks]),
    )
