"""How many moves have started lately, and how many more may start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reactor.settings.model import ClusterLimits, Limits, NamespaceLimits, WorkloadLimits

MoveRate = ClusterLimits | NamespaceLimits | WorkloadLimits
SPANS = {"10 minutes": 600.0, "day": 86_400.0}


@dataclass(frozen=True, slots=True)
class StartedMove:
    id: str
    at: float
    namespace: str
    workload: str


@dataclass(frozen=True, slots=True)
class Exceeded:
    """Which limit is reached, and when the next move may start."""

    text: str
    until: float


@dataclass(frozen=True, slots=True)
class OftenMoved:
    namespaces: Collection[str]
    workloads: Mapping[str, str]
    """With their namespaces."""


@dataclass(frozen=True, slots=True)
class RecentMoves:
    """The moves that started within a day, oldest first."""

    started: tuple[StartedMove, ...] = ()

    def after(self, moves: Iterable[StartedMove]) -> RecentMoves:
        """With these; a move that is counted already does not count again."""
        known = {move.id for move in self.started}
        new = {move.id: move for move in moves if move.id not in known}
        return RecentMoves(tuple(sorted((*self.started, *new.values()), key=lambda move: move.at))) if new else self

    def without_old(self, now: float) -> RecentMoves:
        if not self.started or now - self.started[0].at < SPANS["day"]:
            return self
        return RecentMoves(tuple(move for move in self.started if now - move.at < SPANS["day"]))

    def often_moved(self, limits: Limits) -> OftenMoved:
        """All whose own limit may be reached: within a day they had as many moves as one of its numbers."""
        namespaces = Counter(move.namespace for move in self.started)
        workloads = Counter((move.workload, move.namespace) for move in self.started)
        most_of_namespace, most_of_workload = (
            min(rate.per_10_minutes, rate.per_day) for rate in (limits.namespace, limits.workload)
        )
        return OftenMoved(
            {name for name, moves in namespaces.items() if moves >= most_of_namespace},
            {name: namespace for (name, namespace), moves in workloads.items() if moves >= most_of_workload},
        )

    def exceeds(self, namespace: str, workload: str, now: float, limits: Limits) -> Exceeded | None:
        """The first limit that a further move of this workload would exceed."""
        scopes: tuple[tuple[str, MoveRate, Sequence[StartedMove]], ...] = (
            ("the cluster", limits.cluster, self.started),
            (f"namespace {namespace}", limits.namespace, [m for m in self.started if m.namespace == namespace]),
            (workload, limits.workload, [m for m in self.started if m.workload == workload]),
        )
        return next((found for scope in scopes if (found := _exceeded(*scope, now)) is not None), None)


def _exceeded(scope: str, rate: MoveRate, started: Sequence[StartedMove], now: float) -> Exceeded | None:
    times = [move.at for move in started]
    for (span, seconds), most in zip(SPANS.items(), (rate.per_10_minutes, rate.per_day), strict=True):
        within = [at for at in times if now - at < seconds]
        if len(within) >= most:
            text = f"{len(within)} moves of {scope} started in the last {span}, and {most} are allowed"
            return Exceeded(text, within[-most] + seconds)
    return None
