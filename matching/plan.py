"""The plan: a value that says what should move where, why, and how far it may be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from matching.problem import Problem


@dataclass(frozen=True, slots=True)
class Rejected:
    """A node that was not chosen for a pod, and why in a few words."""

    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Move:
    """`source` is None for a pending pod. `rank` is the target's place (from 1) in the pod's list."""

    pod: str
    uid: str
    source: str | None
    target: str
    rank: int
    reasons: tuple[str, ...]
    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True)
class Stay:
    pod: str
    uid: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Unplaced:
    pod: str
    uid: str
    reason: str
    rejected: tuple[Rejected, ...] = ()


class Cause(StrEnum):
    """Why a blocking pair is left."""

    BUDGET = "budget"
    NOBODY_LEFT_OUT = "nobodyLeftOut"
    NO_STABLE_MATCHING = "noStableMatching"
    NOT_WORTH_IT = "notWorthIt"
    """The moves that would resolve it neither lower the overload nor help an unhappy pod."""
    NARROWER = "narrowerMatching"
    """The unhappy pods alone were matched, because that does as much good for fewer moves."""


@dataclass(frozen=True, slots=True)
class BlockingPair:
    pod: str
    node: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class Certificate:
    feasible: bool
    violations: tuple[str, ...]
    blocking: tuple[BlockingPair, ...]
    """The first of them, by node and rank."""
    unnamed: int = 0
    """How many more there are."""

    @property
    def blocking_pairs(self) -> int:
        return len(self.blocking) + self.unnamed


@dataclass(frozen=True, slots=True)
class Measures:
    """What a placement looks like, for before and after. Loads are peaks as shares of the node's room, worst axis."""

    node_load: dict[str, float]
    spread: float
    """Highest less lowest load of the ready nodes."""
    overloaded: tuple[str, ...]
    """Nodes whose load leaves less than the headroom free."""
    pending: int


@dataclass(frozen=True, slots=True)
class Plan:
    planner: str
    moves: tuple[Move, ...]
    stays: tuple[Stay, ...]
    unplaced: tuple[Unplaced, ...]
    certificate: Certificate
    before: Measures
    after: Measures
    notes: tuple[str, ...] = ()


class Planner(Protocol):
    """What a plug-in of the entry-point group `rematch.planners` offers."""

    name: str

    def plan(self, problem: Problem) -> Plan: ...
