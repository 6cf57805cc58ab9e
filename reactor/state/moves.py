"""Moves as values: what a snapshot holds of the execution. `reactor.execution.move_states` has the state machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from matching.plan import PlannedMove, Unplaced
from matching.problem import Strategy
from reactor.cluster.records import Owner, Pod
from reactor.cluster.writes import Eviction
from reactor.settings.model import Execution

NO_NODE = "<none>"
"""The target of a pod that a plan dumps; no node can have this name."""


class MoveState(StrEnum):
    PLANNED = "planned"
    EVICTING = "evicting"
    """The eviction is announced in the journal: it may have been sent."""
    EVICTED = "evicted"
    BOUND = "bound"
    LATE = "late"
    """The replacement was not Ready by its deadline. Its namespace is braked until it is Ready or gone."""
    SURGING = "surging"
    """The hint and one replica more (or the release of the old pod) are announced."""
    SURGED = "surged"
    """The owner makes the replacement; the old pod runs on."""
    RETIRING = "retiring"
    """The replacement is available; what ends the old pod is announced."""
    RETIRED = "retired"
    """The old pod is told to end."""
    UNDOING = "undoing"
    """What takes the surge back is announced."""
    UNDONE = "undone"
    """Taken back; the owner ends the pod that is too many."""
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    ABANDONED = "abandoned"


ENDED = frozenset({MoveState.DONE, MoveState.SKIPPED, MoveState.FAILED, MoveState.ABANDONED})
IN_FLIGHT = frozenset(MoveState) - ENDED - {MoveState.PLANNED}
ANNOUNCING = frozenset({MoveState.EVICTING, MoveState.SURGING, MoveState.RETIRING, MoveState.UNDOING})
"""States that are journaled before their first call. The others follow from an answer or from the cluster."""
MOVE_VERSION = 1
"""Of the fields of a move. A field that is added has a default, so that the version before reads a newer entry."""


class Call(StrEnum):
    """What a move may write to the cluster. Repeating one is harmless."""

    HINT = "hint"
    EVICT = "evict"
    SCALE_UP = "scaleUp"
    SCALE_DOWN = "scaleDown"
    RELEASE = "release"
    """Take the label off the old pod by which its ReplicaSet holds it."""
    TAKE_BACK = "takeBack"
    """Put the labels back."""
    DETACH = "detach"
    """Take labels off the old pod by which Services and PDBs select it."""
    REMOVE = "remove"
    """Evict the old pod after it was released."""
    COST_OLD = "costOld"
    """Make the old pod the one that its ReplicaSet deletes."""
    COST_NEW = "costNew"
    CLEAR_COSTS = "clearCosts"


@dataclass(frozen=True, slots=True)
class PodRef:
    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Move:
    """One pod going from a node to a node, from the plan to the Ready replacement.

    Plain fields only, so that a journal can hold it: `msgspec.json` writes and reads it, in less than 4 KiB.
    """

    id: str
    plan_id: str
    pod: PodRef
    owner: Owner | None
    template_hash: str
    workload: str
    source: str
    target: str
    strategy: Strategy = Strategy.EVICT
    reasons: tuple[str, ...] = ()
    state: MoveState = MoveState.PLANNED
    answer: Eviction | None = None
    """What the eviction API answered."""
    retry_after: float | None = None
    """Seconds after which the API server accepts another attempt, if it said so."""
    evicted: float | None = None
    bound: float | None = None
    ended: float | None = None
    replacement: str | None = None
    """UID of the pod that the owner created instead."""
    replacement_key: str = ""
    outcome: str = ""
    version: int = MOVE_VERSION
    began: float | None = None
    """When the first call was announced; deadlines count from here."""
    scaled: Owner | None = None
    """The object whose `replicas` a scale surge changes: the Deployment, or the ReplicaSet that has none."""
    replicas: int = 0
    """The owner's wish when the surge began."""
    generation: int = 0
    """Of `scaled` when the surge began: unchanged, nothing was written yet."""
    min_ready: float = 0.0
    """minReadySeconds of the owner."""
    hard: bool = False
    """The hint is a nodeSelector: the second try, after the replacement came back to the source."""
    came_back: bool = False
    """The replacement landed on the source."""
    siblings: tuple[str, ...] = ()
    """Ends of the UIDs of the owner's pods when the move began. Empty when there were too many."""
    newest: float | None = None
    """Creation time of the newest of them, for when there were too many."""
    detached: tuple[tuple[str, str], ...] = ()
    """Labels that are taken off the old pod so that no Service selects it."""
    old_cost: str | None = None
    """The pod-deletion-cost that the old pod had before ours, empty without one; None: it has none of ours."""
    new_cost: str | None = None
    """The same of the replacement."""
    acknowledged: tuple[Call, ...] = ()
    """Calls of this state that have succeeded. After a restart all are repeated."""
    hinted: bool = False
    """There may be a hint for it."""
    ready: float | None = None
    """Since when the replacement is seen Ready."""
    drained: float | None = None
    """When the old pod was seen to be no endpoint any more."""
    settling: float | None = None
    """When the last call of RETIRING or UNDOING succeeded."""
    planned: float | None = None
    """When the plan was made."""
    unhappy: bool = False
    """Whether the pod was unhappy then; a happy pod moves to make room for another one."""
    refused: str = ""
    """Why the API server refuses a call that has to be repeated; empty when it does not. Not journaled."""

    @property
    def active(self) -> bool:
        return self.state not in ENDED

    @property
    def in_flight(self) -> bool:
        return self.state in IN_FLIGHT

    @property
    def dumps(self) -> bool:
        """Ends with the eviction: no node is reserved for the replacement, which stays pending until one takes it."""
        return self.target == NO_NODE

    def reserves(self, now: float, settings: Execution) -> bool:
        """Whether the target is reserved for the replacement: from the eviction until it is bound or time is up."""
        if self.bound is not None or not self.in_flight or self.state in (MoveState.UNDOING, MoveState.UNDONE):
            return False
        since = self.evicted if self.began is None else self.began
        return since is None or now < since + settings.reservation


def dumping(unplaced: Unplaced) -> PlannedMove:
    """A running pod that a plan dumps, as a move to no node."""
    return PlannedMove(unplaced.pod, unplaced.uid, unplaced.source, NO_NODE, 1, (unplaced.reason,), unplaced.rejected)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room on the move's target for the replacement of `pod`."""

    move: Move
    pod: Pod


@dataclass(frozen=True, slots=True)
class ActiveMoves:
    """The moves that have not ended, and what else the execution knows at one instant."""

    moves: tuple[Move, ...] = ()
    """In the order in which they are to be started."""
    pods: Mapping[str, Pod] = field(default_factory=dict)
    """By move id: the pod as it was planned. A reservation needs its rules, labels and requests after it is gone."""
    binding_backoffs: Mapping[str, float] = field(default_factory=dict)
    """By the UID of a pod whose binding failed: when to try again."""
    last_end: float = float("-inf")
    """When the last move that had started ended."""

    @property
    def in_flight(self) -> tuple[Move, ...]:
        return tuple(move for move in self.moves if move.in_flight)

    @property
    def refused(self) -> tuple[Move, ...]:
        return tuple(move for move in self.moves if move.refused)

    def reservation(self, move: Move) -> Reservation:
        return Reservation(move, self.pods[move.id])

    def reservations(self, now: float, settings: Execution) -> list[Reservation]:
        """Of a move that an earlier process began nothing is reserved until one of its pods was seen."""
        return [self.reservation(move) for move in self.moves if move.id in self.pods and move.reserves(now, settings)]

    @property
    def under_way(self) -> tuple[Move, ...]:
        """Without the late ones: these brake their namespace (`decision.brakes`) and hold up nobody else."""
        return tuple(move for move in self.moves if move.state is not MoveState.LATE)
