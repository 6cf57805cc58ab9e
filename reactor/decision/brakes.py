"""Brakes: no move starts in a namespace, or in the cluster, until something that went wrong is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from reactor.cluster.view import ClusterView
from reactor.cluster.writes import Eviction
from reactor.decision.effects import Verdict
from reactor.settings.model import Brake as BrakeSettings
from reactor.state.moves import Move, MoveState

CLUSTER = ""
"""The scope of a brake on the whole cluster; any other scope is a namespace."""
WRITE_ERRORS = frozenset({Eviction.FAILED, Eviction.THROTTLED, Eviction.FORBIDDEN, Eviction.UNKNOWN})
ERRORS_WITHIN = 600.0
LEAST_NOT_READY = 2
LEAST_ROLLOUTS = 5


class BrakeCause(StrEnum):
    NO_EFFECT = "movesWithoutEffect"
    LATE = "replacementLate"
    NOT_READY = "nodesNotReady"
    API_ERRORS = "apiErrors"
    ROLLOUTS = "rollouts"


_SEEN = frozenset({BrakeCause.LATE, BrakeCause.NOT_READY, BrakeCause.ROLLOUTS})
"""What the cluster shows by itself: the brake ends as soon as it does not any more."""

_Found = tuple[str, BrakeCause, str, float]
"""Scope, cause, text, and when what sets the brake happened last."""


@dataclass(frozen=True, slots=True)
class Brake:
    scope: str
    cause: BrakeCause
    text: str
    since: float
    until: float

    @property
    def key(self) -> tuple[str, BrakeCause]:
        return self.scope, self.cause

    def __str__(self) -> str:
        where = f"namespace {self.scope}" if self.scope else "the cluster"
        return f"{where} is braked ({self.cause}): {self.text}"


@dataclass(frozen=True, slots=True)
class Miss:
    """A move that did not help."""

    at: float
    namespace: str


@dataclass(frozen=True, slots=True)
class Brakes:
    """A value; each update returns a new one. Kept in the journal, so a restart does not release a brake."""

    held: tuple[Brake, ...] = ()
    misses: tuple[Miss, ...] = ()
    errors: tuple[float, ...] = ()

    def on(self, namespace: str, now: float) -> Brake | None:
        """The brake that holds moves in this namespace, the longest one first."""
        holding = [brake for brake in self.held if now < brake.until and brake.scope in (CLUSTER, namespace)]
        return max(holding, key=lambda brake: brake.until, default=None)

    def after_moves(self, moves: Iterable[Move]) -> Brakes:
        """Counts the moves that failed by an error of the API server."""
        errors = tuple(move.ended for move in moves if _failed_by_error(move) and move.ended is not None)
        return replace(self, errors=(*self.errors, *errors)) if errors else self

    def after(
        self, view: ClusterView, late: Iterable[Move], verdicts: Iterable[Verdict], settings: BrakeSettings
    ) -> Brakes:
        """`late` are the moves whose replacement was not Ready by its deadline."""
        now = view.at
        misses = (*self.misses, *(Miss(v.at, v.trial.namespace) for v in verdicts if not v.helped))
        kept = Brakes(
            tuple(brake for brake in self.held if now < brake.until and brake.cause not in _SEEN),
            tuple(miss for miss in misses if now - miss.at < settings.duration),
            tuple(at for at in self.errors if now - at < ERRORS_WITHIN),
        )
        found = (*_without_effect(kept.misses, settings), *_late(late, now), *_cluster_causes(kept, view, settings))
        since = {brake.key: brake.since for brake in self.held}
        held = {brake.key: brake for brake in kept.held}
        for scope, cause, text, latest in found:
            known, until = held.get((scope, cause)), latest + settings.duration
            if now < until and (known is None or known.until < until):
                held[scope, cause] = Brake(scope, cause, text, since.get((scope, cause), now), until)
        return replace(kept, held=tuple(held.values()))


def _failed_by_error(move: Move) -> bool:
    return move.state is MoveState.FAILED and move.answer in WRITE_ERRORS


def _without_effect(misses: Sequence[Miss], settings: BrakeSettings) -> list[_Found]:
    counts = Counter(miss.namespace for miss in misses)
    most = settings.moves_without_effect
    braked = [namespace for namespace, count in sorted(counts.items()) if count >= most]
    latest = {miss.namespace: miss.at for miss in sorted(misses, key=lambda miss: miss.at)}
    found = [
        (name, BrakeCause.NO_EFFECT, f"{counts[name]} moves in {name} did not help", latest[name]) for name in braked
    ]
    if len(braked) >= most:
        text = f"moves did not help in {len(braked)} namespaces"
        found.append((CLUSTER, BrakeCause.NO_EFFECT, text, max(latest[name] for name in braked)))
    return found


def _late(moves: Iterable[Move], now: float) -> list[_Found]:
    return [(move.pod.namespace, BrakeCause.LATE, _late_text(move), now) for move in moves]


def _late_text(move: Move) -> str:
    waiting = f"{move.replacement_key} on {move.target}" if move.replacement else f"the successor of {move.pod.key}"
    return f"{waiting} is not Ready by its deadline; moves go on when it is Ready or gone"


def _cluster_causes(brakes: Brakes, view: ClusterView, settings: BrakeSettings) -> list[_Found]:
    found = []
    not_ready = sum(not node.ready for node in view.nodes.values())
    if not_ready >= max(LEAST_NOT_READY, settings.not_ready_nodes * len(view.nodes)):
        found.append((CLUSTER, BrakeCause.NOT_READY, f"{not_ready} of {len(view.nodes)} nodes are not Ready", view.at))
    if len(brakes.errors) >= settings.failed_writes:
        text = f"{len(brakes.errors)} moves failed by errors of the API server"
        found.append((CLUSTER, BrakeCause.API_ERRORS, text, max(brakes.errors)))
    deployments = [workload for workload in view.workloads.values() if workload.kind == "Deployment"]
    rolling = sum(workload.rolling_out for workload in deployments)
    if rolling >= max(LEAST_ROLLOUTS, settings.rollouts * len(deployments)):
        found.append(
            (CLUSTER, BrakeCause.ROLLOUTS, f"{rolling} of {len(deployments)} Deployments are rolling out", view.at)
        )
    return found
