"""Three days of a small cluster in a store: every noon one of its nodes is too small for what its pods want."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from reactor.cluster.view import ClusterView
from reactor.history.chunk import Chunk, Columns
from reactor.history.codes import encode
from reactor.history.levels import FIVE_MINUTES, Axis
from reactor.history.series import SeriesIndex
from storage.rows import ChunkRow
from storage.store import Store
from tests.support.cluster import GIB, make_node, make_owner, make_pod, make_view, make_workload

BEGIN = 1_700_006_400
"""Midnight."""
DAYS = 3
PLACES = {"a-1": "n1", "b-1": "n1", "c-1": "n1", "d-1": "n2"}
NODES = {"n1": 4.0, "n2": 8.0}
NOON = range(12 * 12, 14 * 12)
"""Steps of a day in which `a` wants more."""

Values = Mapping[Axis, np.ndarray]


def cluster() -> ClusterView:
    """As it is after the recorded days."""
    end = BEGIN + DAYS * 86400
    pods = [make_pod(name, node=node, created=float(BEGIN), ready_since=float(BEGIN)) for name, node in PLACES.items()]
    owners = [make_workload(make_owner(f"{name[0]}-1a2b"), replicas=1) for name in PLACES]
    return make_view(pods, [make_node(name, cores) for name, cores in NODES.items()], workloads=owners, at=float(end))


def wanted(step: int) -> dict[str, float]:
    return {"a-1": 2.4 if step % 288 in NOON else 1.0, "b-1": 1.0, "c-1": 0.8, "d-1": 1.0}


async def fill(store: Store, *, failing: float = 0.4, spoiled: bool = False) -> None:
    """`failing`: the share of the probes that fail on the crowded node. `spoiled`: with a wrong unit, a gap and a chunk
    of the far future."""
    series, source = SeriesIndex(), np.random.default_rng(1)
    nodes = series.assign("node", list(NODES), BEGIN)
    pods = series.assign("pod", [f"shop/{name}" for name in PLACES], BEGIN)
    number = {row.name: row.id for row in nodes}
    on = np.array([[number[node]] * 12 for node in PLACES.values()], np.uint32)
    for hour in range(24 * DAYS):
        if spoiled and hour == 30:
            continue
        used, failed = np.zeros((len(PLACES), 12)), np.zeros((len(PLACES), 12))
        for at in range(12):
            want = wanted(hour * 12 + at)
            for row, (name, node) in enumerate(PLACES.items()):
                load = sum(want[other] for other, place in PLACES.items() if place == node) / NODES[node]
                used[row, at] = want[name] / max(load, 1.0)
                failed[row, at] = source.binomial(30, failing if load > 1 else 0.0) / 5
        if spoiled and hour == 5:
            used[0, 0] = 2e9
        start = BEGIN + hour * 3600
        by_node = np.array([used[[place == node for place in PLACES.values()]].sum(axis=0) for node in NODES])
        of_pods = {Axis.CPU: used, Axis.MEMORY: np.full_like(used, 0.25 * GIB), Axis.FAILURES: failed}
        of_pods |= {Axis.SUCCESSES: 6.0 - failed, Axis.READY: np.ones_like(used)}
        of_nodes = {Axis.CPU: by_node, Axis.MEMORY: np.full_like(by_node, GIB), Axis.READY: np.ones_like(by_node)}
        store.add_chunks(_chunk(start, pods[0].block, [row.id for row in pods], on, of_pods))
        store.add_chunks(_chunk(start, nodes[0].block, [row.id for row in nodes], np.zeros((2, 12)), of_nodes))
    if spoiled:
        ahead = BEGIN + 10 * 365 * 86400
        store.add_chunks(_chunk(ahead, pods[0].block, [row.id for row in pods], on, {Axis.CPU: np.ones((4, 12))}))
    store.add_series(*series.take_changed())
    assert await store.flush()


def _chunk(start: int, block: int, ids: list[int], on: np.ndarray, values: Values) -> ChunkRow:
    axes = {
        axis: Columns(np.full(each.shape, 5, np.uint32), encode(each), encode(each)) for axis, each in values.items()
    }
    document = Chunk(np.array(ids, np.uint32), on.astype(np.uint32), axes).to_bytes()
    return ChunkRow(FIVE_MINUTES.step, start, block, document)


async def filled(path: Path, **how: float | bool) -> None:
    async with await Store.open(path) as store:
        await fill(store, **how)  # type: ignore[arg-type]
