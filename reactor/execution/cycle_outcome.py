"""The outcome of a cycle and of a pass of the binder, as values for the record."""

from __future__ import annotations

from dataclasses import dataclass, field

from matching.plan import Plan, PlannedMove
from matching.problem import Problem
from reactor.cluster.records import Pod
from reactor.decision.decide import Decision
from reactor.execution.binder import Bound
from reactor.state.moves import ActiveMoves, Move


@dataclass(frozen=True, slots=True)
class Placement:
    """Pending pods: where they go, and what the bindings answered."""

    plan: Plan | None
    """By the matching; None when it had nothing to place."""
    bound: tuple[Bound, ...]
    unsupported: tuple[Pod, ...]
    """Not bound, because a hard constraint of theirs is not supported."""
    reserved: tuple[PlannedMove, ...] = ()
    """Replacements that go to the node reserved for them."""
    observed: bool = False
    """In mode observe: most of them are not bound."""

    @property
    def moves(self) -> tuple[PlannedMove, ...]:
        return (*self.reserved, *(self.plan.moves if self.plan is not None else ()))


@dataclass(frozen=True, slots=True)
class Rematch:
    plan_id: str
    plan: Plan
    problem: Problem


@dataclass(frozen=True, slots=True)
class Outcome:
    decision: Decision
    rematch: Rematch | None = None
    followed: tuple[Move, ...] = ()
    """Moves that changed their state in the cluster since the last cycle. They are recorded when the cycle starts."""
    executed: tuple[Move, ...] = ()
    """Moves that this cycle adopted, started, skipped or gave up."""
    active: ActiveMoves = field(default_factory=ActiveMoves)
    """The moves at the end of the cycle."""

    @property
    def moves(self) -> tuple[Move, ...]:
        """Every move that changed its state, in order."""
        return (*self.followed, *self.executed)
