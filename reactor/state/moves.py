"""Moves under way and moves just made, as values: what the decision must know of the execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from matching.plan import PlannedMove, Unplaced
from reactor.cluster.records import Pod
from reactor.cluster.writes import Eviction
from reactor.decision.reasons import Reason

LONGEST_COOLDOWN = 3600.0
MOST_DOUBLINGS = 32
NO_NODE = "<none>"
"""Instead of the target of a pod that a plan dumps; no node can be called so."""


class MoveState(StrEnum):
    PLANNED = "planned"
    EVICTED = "evicted"
    BOUND = "bound"
    LATE = "late"
    """The replacement was not Ready by its deadline: nothing else is started until it is Ready or gone."""
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    ABANDONED = "abandoned"


ENDED = frozenset({MoveState.DONE, MoveState.SKIPPED, MoveState.FAILED, MoveState.ABANDONED})


@dataclass(frozen=True, slots=True)
class Move:
    """One move on its way from the plan to a Ready replacement."""

    id: str
    plan_id: str
    move: PlannedMove
    pod: Pod
    workload: str
    state: MoveState = MoveState.PLANNED
    siblings: frozenset[str] = frozenset()
    """UIDs of the owner's pods at the time of the eviction: whoever comes later is the replacement."""
    answer: Eviction | None = None
    """What the eviction API said."""
    evicted: float | None = None
    bound: float | None = None
    ended: float | None = None
    replacement: str | None = None
    replacement_key: str = ""
    outcome: str = ""

    @property
    def active(self) -> bool:
        return self.state not in ENDED

    @property
    def dumps(self) -> bool:
        """Ends with the eviction: no node is held for the replacement, which waits until one takes it."""
        return self.move.target == NO_NODE

    @property
    def in_flight(self) -> bool:
        return self.state in (MoveState.EVICTED, MoveState.BOUND, MoveState.LATE)


def dumping(left: Unplaced) -> PlannedMove:
    """The dumping of a running pod as a move to nowhere."""
    return PlannedMove(left.pod, left.uid, left.source, NO_NODE, 1, (left.reason,), left.rejected)


@dataclass(frozen=True, slots=True)
class Lineage:
    """A pod that is here because we moved its predecessor; `generation` counts the moves in a row."""

    moved: float
    generation: int
    predecessor: str = ""
    """UID of the pod that was moved."""

    @classmethod
    def after(cls, before: Lineage | None, moved: float, predecessor: str) -> Lineage:
        """A predecessor that was well off for longer than the longest cooldown starts a new count."""
        again = before is not None and moved - before.moved < LONGEST_COOLDOWN
        return cls(moved, before.generation + 1 if before is not None and again else 1, predecessor)

    def rests_until(self, cooldown: float) -> float:
        doublings = min(self.generation - 1, MOST_DOUBLINGS)
        return self.moved + min(cooldown * 2.0**doublings, LONGEST_COOLDOWN)


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing is tried for a pod until then, because the last try said so."""

    until: float
    reason: Reason
    text: str


@dataclass(frozen=True, slots=True)
class Ongoing:
    """The execution as seen at one instant."""

    runs: tuple[Move, ...] = ()
    """Active ones only, in the order in which they are to be started."""
    lineage: Mapping[str, Lineage] = field(default_factory=dict)
    """By the UID of the replacement."""
    relieved: Mapping[str, float] = field(default_factory=dict)
    """By node: when a pod was last moved away from it."""
    resting: Mapping[str, Rest] = field(default_factory=dict)
    """By pod UID."""
    unbound: Mapping[str, float] = field(default_factory=dict)
    """By the UID of a pod whose binding failed: when it is worth trying again."""
    last_end: float = float("-inf")
    """When the last move that had begun was over."""

    @property
    def in_flight(self) -> tuple[Move, ...]:
        return tuple(run for run in self.runs if run.in_flight)

    @property
    def halted(self) -> str:
        """Why no further move is started; empty when moves may start."""
        late = [run for run in self.runs if run.state is MoveState.LATE]
        if not late:
            return ""
        run = late[0]
        waiting = (
            f"{run.replacement_key} on {run.move.target}" if run.replacement else f"the successor of {run.move.pod}"
        )
        return f"{waiting} is not Ready by its deadline; moves go on when it is Ready or gone"
