"""A store with a week of usage, and the preference lists of a cluster that has it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from matching.model.arrays import arrays_of, movable
from matching.preferences import Preferences, ranking
from matching.problem import Options, Problem, Scope
from reactor.background.usage_recording import UsageRecording
from reactor.history.chunk import Chunk
from reactor.history.levels import HOURS, Axis
from reactor.history.minute import Measured, Minute
from reactor.history.rollup import hour_of, joined, with_step
from reactor.history.series import SeriesIndex
from reactor.planning.problem_builder import ProblemBuilder
from storage.rows import ChunkRow, SeriesKind
from storage.store import Store
from tests.support.clock import VirtualClock
from tests.support.cluster import GIB, make_node, make_pod
from tests.support.rig import Rig

END = 1_700_006_400.0
"""Midnight."""
DAYS = 7
PAST: Mapping[str, float] = {"shop/a-1": 3.0, "shop/b-1": 0.2, "shop/c-1": 1.0}
"""Cores in the past. Now it is the other way round."""
NOW = {"a-1": 0.1, "b-1": 2.5, "c-1": 1.2}


async def fill_week(store: Store, past: Mapping[str, float] = PAST, kind: SeriesKind = "pod") -> None:
    series = SeriesIndex(await store.series())
    rows = series.assign(kind, list(past), END - 3600)
    cores, memory = np.array(list(past.values())), np.full(len(past), 0.5 * GIB)
    for day in range(DAYS):
        start = int(END) - (DAYS - day) * HOURS.chunk
        chunk = None
        for hour in range(HOURS.buckets):
            chunk = with_step(chunk, hour, _hour(rows, cores * (1 + 0.1 * (hour % 3)), memory), HOURS.buckets)
        assert chunk is not None
        store.add_chunks(ChunkRow(HOURS.step, start, rows[0].block, chunk.to_bytes()))
    store.add_series(*series.take_changed())
    assert await store.flush()


def _hour(rows: list, cores: np.ndarray, memory: np.ndarray) -> Chunk:  # type: ignore[type-arg]
    axes = {Axis.CPU: Measured.once(cores), Axis.MEMORY: Measured.once(memory)}
    (row,) = Minute(0, rows, np.zeros(len(rows), np.uint32), axes).rows()
    minute = Chunk.from_bytes(row.document)
    return hour_of(joined(dict.fromkeys(range(60), minute), 60))


async def restarted(store: Store, rig: Rig | None = None) -> Rig:
    """A controller that has just started with this store, and has measured once."""
    rig = rig or Rig(clock=VirtualClock(END + 300))
    pods = [make_pod(f"{app}-1", created=END - 10 * 86400) for app in "abc"]
    rig.sync(*pods, make_node("n1", 8.0), make_node("n2", 4.0), make_node("n3", 2.0))
    rig.measure(NOW, {"n1": 4.0, "n2": 0.5, "n3": 0.5}, memory=0.5 * GIB)
    await UsageRecording(rig.state, store, lambda: rig.settings, rig.clock).restore(store)
    return rig


def problem_of(rig: Rig) -> Problem:
    snapshot = rig.snapshot()
    builder = ProblemBuilder(snapshot)
    for pod in sorted(snapshot.cluster.pods.values(), key=lambda pod: pod.key):
        builder.add(pod)
    return builder.problem(Options())


def preference_lists(problem: Problem) -> dict[str, list[str]]:
    """Nodes by pod, the preferred one first; and under `nodes` the pods as all nodes rank them."""
    arrays = arrays_of(problem)
    ranked = ranking(arrays)
    preferences = Preferences(arrays, movable(arrays, Scope.CLUSTER), ranked)
    lists = {
        pod.key: [arrays.nodes[at].name for at in np.argsort(preferences.distances(number), kind="stable")]
        for number, pod in enumerate(arrays.pods)
    }
    return {**lists, "nodes": [arrays.pods[at].key for at in ranked.tolist()]}


async def lists_after_start(database: Path, *, fill: bool = False) -> dict[str, list[str]]:
    async with await Store.open(database) as store:
        if fill:
            await fill_week(store)
        return preference_lists(problem_of(await restarted(store)))
