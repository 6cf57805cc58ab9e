"""The recorded history as arrays: a row per pod or node, a column per step of five minutes.

What cannot be true is left out here, and `notes` says so: nothing of it enters a model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.failure_curve import FailureCurve
from reactor.cluster.records import Node
from reactor.errors import InputError
from reactor.history.chunk import Chunk, ChunkError
from reactor.history.codes import decode
from reactor.history.levels import FIVE_MINUTES, Axis
from reactor.state.calibration import PRIOR, Calibration, fitted_curve
from storage.rows import ChunkRow, MoveRow, SeriesRow, UsageEventRow
from storage.store import Store

STEP = FIVE_MINUTES.step
DAY = 86400
Grid = NDArray[np.float32]
_AXES = (Axis.CPU, Axis.MEMORY, Axis.THROTTLED, Axis.SUCCESSES, Axis.FAILURES, Axis.READY)
_IMPOSSIBLE = 1.1
"""Times the capacity of its node: a mistake in units."""
_MOST_MOVES = 1_000_000


@dataclass(frozen=True, slots=True)
class Recorded:
    begin: int
    """Seconds since the epoch; the start of the first step."""
    nodes: tuple[str, ...]
    pods: tuple[str, ...]
    of_pods: Mapping[Axis, Grid]
    peaks: Grid
    """Cores by pod and step: the highest of the minutes."""
    of_nodes: Mapping[Axis, Grid]
    on: NDArray[np.int32]
    """By pod and step: the row of its node, -1 where it did not run."""
    events: tuple[UsageEventRow, ...]
    moves: tuple[MoveRow, ...]
    """Those that were carried out."""
    curve: FailureCurve
    """What the controller expected of loads: of all probes that it counted, the cautious prior before them."""
    notes: tuple[str, ...]

    @property
    def steps(self) -> int:
        return int(self.on.shape[1])

    @property
    def end(self) -> int:
        return self.begin + self.steps * STEP


async def read_recorded(store: Store, nodes: Mapping[str, Node], since: float, now: float) -> Recorded:
    """Complete hours only. `nodes`: those of the cluster, by name."""
    keys = await store.chunk_keys(STEP, since)
    starts = [start for start, _ in keys if start + FIVE_MINUTES.chunk <= now]
    if not starts:
        raise InputError("no usage is recorded in this time; a complete hour is needed, and days are better")
    begin, end = min(starts), max(starts) + FIVE_MINUTES.chunk
    notes = []
    if len(starts) < len(keys):
        notes.append(f"{len(keys) - len(starts)} chunks of usage are of the future; they are left out")
    into = _Grids(await store.series("node"), await store.series("pod"), begin, (end - begin) // STEP)
    for day in range(begin, end, DAY):
        rows = await store.chunks(STEP, day, min(day + DAY, end))
        await asyncio.to_thread(into.put, rows)
    notes += into.cleaned(nodes)
    events = await store.usage_events_between(begin, end)
    moves = [row for row in await store.moves(_MOST_MOVES, begun=True) if row.state == "done"]
    return Recorded(
        begin,
        tuple(row.name for row in into.nodes),
        tuple(row.name for row in into.pods),
        into.of_pods,
        into.peaks,
        into.of_nodes,
        into.on,
        tuple(events),
        tuple(row for row in moves if begin <= row.started < end),
        await _curve(store, now),
        tuple(notes),
    )


async def _curve(store: Store, now: float) -> FailureCurve:
    calibration, rows = Calibration(), await store.load_bins()
    calibration.restore(rows, now)
    return await asyncio.to_thread(fitted_curve, calibration.table) if rows else PRIOR


class _Grids:
    def __init__(self, nodes: Sequence[SeriesRow], pods: Sequence[SeriesRow], begin: int, steps: int) -> None:
        self.nodes, self.pods = nodes, pods
        self._begin, self._steps = begin, steps
        highest = max((row.id for row in (*nodes, *pods)), default=0)
        self._row = np.full(highest + 1, -1, np.int64)
        self._is_node = np.zeros(highest + 1, np.bool_)
        for rows in (nodes, pods):
            self._row[[row.id for row in rows]] = np.arange(len(rows))
        self._is_node[[row.id for row in nodes]] = True
        self.of_pods = {axis: self._empty(len(pods)) for axis in _AXES}
        self.peaks = self._empty(len(pods))
        self.of_nodes = {axis: self._empty(len(nodes)) for axis in (Axis.CPU, Axis.MEMORY, Axis.READY)}
        self.on = np.full((len(pods), steps), -1, np.int32)
        self.damaged = 0

    def _empty(self, rows: int) -> Grid:
        return np.full((rows, self._steps), np.nan, np.float32)

    def put(self, rows: Sequence[ChunkRow]) -> None:
        for row in rows:
            try:
                chunk = Chunk.from_bytes(row.document)
            except ChunkError:
                self.damaged += 1
                continue
            self._put(chunk, (row.start - self._begin) // STEP)

    def _put(self, chunk: Chunk, first: int) -> None:
        ids = np.where(chunk.ids < len(self._row), chunk.ids, 0)
        at = np.where(chunk.ids < len(self._row), self._row[ids], -1)
        columns = slice(first, first + chunk.nodes.shape[1])
        of_nodes, of_pods = self._is_node[ids] & (at >= 0), ~self._is_node[ids] & (at >= 0)
        for grids, mine in ((self.of_nodes, of_nodes), (self.of_pods, of_pods)):
            for axis, grid in grids.items():
                if axis in chunk.axes:
                    grid[at[mine], columns] = decode(chunk.axes[axis].means[mine])
        if Axis.CPU in chunk.axes:
            self.peaks[at[of_pods], columns] = decode(chunk.axes[Axis.CPU].maxima[of_pods])
        known = np.where(chunk.nodes[of_pods] < len(self._row), chunk.nodes[of_pods], 0)
        self.on[at[of_pods], columns] = np.where(self._is_node[known], self._row[known], -1)

    def cleaned(self, nodes: Mapping[str, Node]) -> list[str]:
        """Takes out what cannot be true, and says what it was."""
        notes = [f"{self.damaged} damaged chunks of usage are gaps"] if self.damaged else []
        for axis, resource in ((Axis.CPU, "cpu"), (Axis.MEMORY, "memory")):
            names = [row.name for row in self.nodes]
            most = np.array([_capacity(nodes.get(name), resource) for name in names] + [np.inf], np.float32)
            for what, grid, limit in (
                ("nodes", self.of_nodes[axis], most[:-1, np.newaxis]),
                ("pods", self.of_pods[axis], most[self.on]),
                *(() if axis is Axis.MEMORY else (("peaks of pods", self.peaks, most[self.on]),)),
            ):
                with np.errstate(invalid="ignore"):
                    wrong = grid > _IMPOSSIBLE * limit
                grid[wrong] = np.nan
                if wrong.any():
                    number = f"{int(wrong.sum())} values of {axis.label} of {what}"
                    notes.append(f"{number} are above what the node has (a wrong unit?): left out")
        measured = ~np.isnan(self.of_pods[Axis.CPU]).all(axis=0)
        gaps = int((~measured).sum())
        if gaps:
            notes.append(f"{gaps * STEP // 60} minutes have no measurement at all; they are not replayed")
        return notes


def _capacity(node: Node | None, resource: str) -> float:
    return np.inf if node is None else node.capacity.get(resource) or np.inf
