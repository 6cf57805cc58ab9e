"""What came of a cycle, as a value for the record."""

from __future__ import annotations

from dataclasses import dataclass

from matching.plan import Plan
from matching.problem import Problem
from reactor.cluster.records import Pod
from reactor.decision.decide import Decision
from reactor.execution.executor import Bound
from reactor.state.moves import Move


@dataclass(frozen=True, slots=True)
class Placement:
    """Pending pods: the plan for them (None when none can be judged) and what the bindings said (mode act)."""

    plan: Plan | None
    bound: tuple[Bound, ...]
    unsupported: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Rematch:
    plan_id: str
    plan: Plan
    problem: Problem


@dataclass(frozen=True, slots=True)
class Outcome:
    placement: Placement | None
    decision: Decision
    rematch: Rematch | None
    moves: tuple[Move, ...]
    """Every run that changed its stage in this cycle, in the order in which it did."""
