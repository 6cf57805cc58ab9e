"""What a planner found, before it is written as a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.arrays import Arrays
from matching.model.ledger import peak_loads
from matching.plan import BlockingCause, Measures
from matching.planning.expectation import Expectation
from matching.planning.power import power_use
from matching.problem import TOLERANCE


@dataclass(frozen=True, slots=True)
class Choice:
    at: Ints
    """For each pod the node it ends on, or NOWHERE."""
    chose: Mask
    """The pods that took part."""
    headroom: dict[int, float | None]
    """Pods that did not get the full headroom, and how much they got; None: not even room for the peak."""
    kept_on_node: frozenset[int] = frozenset()
    """Running pods that stay because no node would have been left for them had they chosen."""
    given_up: Mapping[int, str] = field(default_factory=dict)
    """Pods whose moves were given up because they cannot be carried out in the order of the plan, each with the
    reason."""
    redirected: Mapping[int, str] = field(default_factory=dict)
    """Pods that go to another node than the planner wanted, so that the moves do not wait for each other; each with the
    reason."""


def with_placement(choice: Choice, at: Ints) -> Choice:
    """What it says about headroom still holds for the pods that end where they chose."""
    headroom = {pod: given for pod, given in choice.headroom.items() if at[pod] == choice.at[pod]}
    return replace(choice, at=at, headroom=headroom)


class PlannerReasons(Protocol):
    """The reasons of a planner that does not match by preference."""

    def rank(self, pod: int) -> int:
        """The rank, from 1, of the node it got."""
        ...

    def why_moved(self, pod: int) -> tuple[str, ...]:
        """The rule that chose the pod, and the rule that chose the node."""
        ...

    def why_stayed(self, pods: Ints) -> Sequence[str]:
        """For each of these pods; in a large cluster that is nearly every pod."""
        ...

    def costs(self, pod: int) -> Floats:
        """Per node, with the plan done: what the planner compares; the lowest is the best."""
        ...

    def describe_cost(self, cost: float) -> str: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    choice: Choice
    """What the plan does."""
    wanted: Choice
    """What the planner wanted; the same unless a budget, a comparison or a constraint held moves back."""
    cause: BlockingCause = BlockingCause.NO_STABLE_MATCHING
    """Of the blocking pairs that are left, if any."""
    stay_reason: str = ""
    """Why a pod stays that `wanted` would have moved."""
    notes: tuple[str, ...] = ()
    reasons: PlannerReasons | None = None
    """The planner's own reasons; None: the pods' preferences explain the moves."""
    worth: Callable[[Ints], tuple[Any, ...]] | None = None
    """What the planner minimises, for a placement. None: no pod may go to a node that the planner did not choose."""
    order: tuple[int, ...] | None = None
    """The pods that get another node, in an order in which each move can be carried out; set by
    `matching.planning.executable`."""
    required_ratio: float | None = None
    """What every move had to save, as a multiple of its price; None: the planner does not weigh benefit."""
    expectation: Expectation | None = None
    """What benefit was weighed by; None: as for every planner."""


@dataclass(frozen=True, slots=True)
class MoveOrder:
    in_order: tuple[int, ...]
    """Pods whose moves can be carried out one after the other."""
    stuck: tuple[int, ...]
    """Pods whose moves are not possible when those are done."""


def measure(arrays: Arrays, at: Ints) -> Measures:
    """`at` has the node of each pod. `pending` counts every pod without a node, also fixed ones, but not pods on nodes
    outside the problem."""
    loads = peak_loads(arrays, at)
    by_name = {node.name: float(load) for node, load in zip(arrays.nodes, loads, strict=True)}
    ready = [by_name[node.name] for node in arrays.nodes if node.ready]
    limit = 1 - arrays.options.headroom + TOLERANCE
    return Measures(
        node_load=by_name,
        spread=max(ready) - min(ready) if ready else 0.0,
        overloaded=tuple(name for name, load in by_name.items() if load > limit),
        pending=int(((at == NOWHERE) & ((arrays.current != NOWHERE) | arrays.without_node)).sum()),
        power=power_use(arrays, at),
    )
