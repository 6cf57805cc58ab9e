"""Forecasts usage after every step of the history, keeps what was learned, and has the models trained."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import structlog

from reactor.background.forecast_training import Trainer, train
from reactor.clock import Clock
from reactor.cluster.kinds import Kind
from reactor.cluster.records import Node
from reactor.forecasts.engine import ClusterNow, ForecastEngine
from reactor.forecasts.forecasts import Forecasts
from reactor.forecasts.models import TRAINED_AXES, load, model_file
from reactor.forecasts.pod_forecasts import coverage_of, memory_limit
from reactor.forecasts.usage_samples import UsageSamples
from reactor.history.levels import FIVE_MINUTES, Axis
from reactor.settings.model import Forecasting, Settings
from reactor.state.live_state import State
from storage import StorageError
from storage.rows import DocumentRow
from storage.store import Store

log = structlog.get_logger(__name__)

DELAY = 20.0
"""After the end of a step, until its last minute is in the store."""
SAVE_EVERY = 3600.0
_PREFIX = "forecasts/"


class ForecastUpdates:
    def __init__(
        self,
        state: State,
        store: Store,
        settings: Callable[[], Settings],
        clock: Clock,
        trainer: Trainer = train,
        *,
        models: Path,
    ) -> None:
        """`models`: the beginning of the names of the files of trained models."""
        self._models = models
        self._trainer = trainer
        self._state = state
        self._store = store
        self._settings = settings
        self._clock = clock
        self._engine: ForecastEngine | None = None
        self._saved = clock.now()
        self._training: asyncio.Task[None] | None = None
        self._trained: dict[Axis, float] = {}
        """When a training last began."""

    async def run(self) -> None:
        """Until cancelled; then what was learned is written once more."""
        try:
            while True:
                await self.update()
                now = self._clock.now()
                await self._clock.sleep(FIVE_MINUTES.step - (now - DELAY) % FIVE_MINUTES.step)
        finally:
            if self._training is not None:
                self._training.cancel()
            self._save()

    async def update(self) -> None:
        """Once per step. While the store does not answer, the forecasts stay what they were."""
        settings = self._settings().forecasting
        if not settings.enabled:
            self._engine = None
            self._state.forecasts = Forecasts()
            return
        try:
            engine = await self._current_engine(settings)
            await self._store.flush()
            before = engine.samples.until
            await engine.samples.read_until(self._last_step())
        except StorageError as error:
            log.warning("usage is not forecast", error=str(error))
            return
        if engine.samples.until == before:
            return
        self._state.forecasts = await engine.advance(self._cluster_now(settings), settings.coverage)
        if self._clock.now() - self._saved >= SAVE_EVERY:
            self._saved = self._clock.now()
            self._add(await asyncio.to_thread(engine.saved))
        self._train_if_due(engine, settings)

    async def until_trained(self) -> None:
        if self._training is not None:
            await self._training

    async def _current_engine(self, settings: Forecasting) -> ForecastEngine:
        """Made at the start; with another estimator the calibration begins anew."""
        engine = self._engine
        if engine is not None and engine.estimator == settings.estimator:
            return engine
        models = {axis: load(model_file(self._models, axis)) for axis in TRAINED_AXES}
        samples = UsageSamples(self._store, self._capacities) if engine is None else engine.samples
        made = ForecastEngine(samples, models, settings.estimator)
        made.restore({row.name.removeprefix(_PREFIX): row.document for row in await self._documents()})
        self._trained = {axis: each.trained_at for axis, each in models.items() if each.trained_at is not None}
        self._engine = made
        return made

    async def _documents(self) -> list[DocumentRow]:
        return [row for row in await self._store.documents() if row.name.startswith(_PREFIX)]

    def _last_step(self) -> int:
        return int(self._clock.now() // FIVE_MINUTES.step) * FIVE_MINUTES.step

    def _capacities(self) -> Mapping[str, float]:
        nodes = cast("Mapping[str, Node]", self._state.mirror.records(Kind.NODES))
        return {name: node.allocatable.get("cpu", 0.0) for name, node in nodes.items()}

    def _cluster_now(self, settings: Forecasting) -> ClusterNow:
        node_of, limits, coverages = {}, {}, {}
        for uid in self._state.usage.pod_slots():
            pod = self._state.mirror.pod(uid)
            if pod is None or pod.node is None or pod.finished:
                continue
            node_of[pod.key] = pod.node
            limit, coverage = memory_limit(pod), coverage_of(pod, settings)
            if limit is not None:
                limits[pod.key] = limit
            if coverage != settings.coverage:
                coverages[pod.key] = coverage
        return ClusterNow(node_of, limits, coverages)

    def _save(self) -> None:
        if self._engine is not None:
            self._add(self._engine.saved())

    def _add(self, documents: Mapping[str, bytes]) -> None:
        now = self._clock.now()
        self._store.add_documents(*(DocumentRow(_PREFIX + name, now, each) for name, each in documents.items()))

    def _train_if_due(self, engine: ForecastEngine, settings: Forecasting) -> None:
        """One axis at a time."""
        training, samples = settings.training, engine.samples
        running = self._training is not None and not self._training.done()
        if running or not training.every or samples.until - samples.first < training.minimum or not samples.first:
            return
        now = self._clock.now()
        due = [axis for axis in TRAINED_AXES if now - self._trained.get(axis, float("-inf")) >= training.every]
        if due:
            self._trained[due[0]] = now
            self._training = asyncio.create_task(self._train(engine, due[0], settings), name="forecast training")

    async def _train(self, engine: ForecastEngine, axis: Axis, settings: Forecasting) -> None:
        path = model_file(self._models, axis)
        try:
            trained = await self._trainer(engine.samples.pods, axis, engine.samples.until, path, settings.training)
        except OSError as error:
            log.warning("the forecasts are not trained", error=str(error))
            return
        if trained:
            engine.use({axis: load(path)})
