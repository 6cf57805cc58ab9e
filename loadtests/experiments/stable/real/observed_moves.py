"""Counts moves from outside, by what happens to the pods: for a controller that does not tell."""

from __future__ import annotations

import math
from typing import Any

from loadtests.experiments.stable.driver import MoveSpan
from loadtests.experiments.stable.measurement import MoveCounts
from loadtests.experiments.stable.real.workload import app_of
from loadtests.workloads.api import Changed, Listed, has_condition
from loadtests.workloads.placement import Placement
from reactor.clock import Clock

Json = dict[str, Any]


class ObservedMoves:
    """A new pod of an app is a move of it, since nobody scales here. It ends when the new pod is Ready and the old one
    is gone or on its way out. Plans cannot be seen: rematches are not counted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, Json] = {}
        self._spans: dict[str, MoveSpan] = {}
        self._listed = False
        self._ended = 0
        self.settled: Placement = {}
        """Not known: placements of an earlier version are not frozen."""

    def see(self, change: Listed | Changed) -> None:
        match change:
            case Listed(items):
                self._pods = {item["metadata"]["uid"]: item for item in items}
            case Changed("DELETED", item):
                self._pods.pop(item["metadata"]["uid"], None)
            case Changed("ADDED", item) if self._listed:
                uid = item["metadata"]["uid"]
                self._pods[uid] = item
                self._spans[uid] = MoveSpan(app_of(item), self._clock.now(), math.inf)
            case Changed(_, item):
                self._pods[item["metadata"]["uid"]] = item
        self._listed = True
        self._end_moves()

    def take(self) -> MoveCounts:
        """Moves that ended since it was last asked."""
        taken, self._ended = MoveCounts(moves=self._ended), 0
        return taken

    def spans(self) -> tuple[MoveSpan, ...]:
        return tuple(self._spans.values())

    def _end_moves(self) -> None:
        for uid, span in self._spans.items():
            if span.ended < math.inf or uid not in self._pods or not has_condition(self._pods[uid], "Ready"):
                continue
            staying = [
                other
                for other, pod in self._pods.items()
                if app_of(pod) == span.app and not pod["metadata"].get("deletionTimestamp")
            ]
            if staying == [uid]:
                self._spans[uid] = MoveSpan(span.app, span.began, self._clock.now())
                self._ended += 1
