"""The plan: a value that says what should move where and why, with a certificate that verifies it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol, overload

from matching.cached_property import cached_property
from matching.problem import Pod, Problem, Strategy


@dataclass(frozen=True, slots=True)
class Rejected:
    """A node that was not chosen for a pod, and why in a few words."""

    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class MoveBenefit:
    """In failing pod-minutes within the horizon: a pod that fails half of its probes for two minutes is one."""

    saved: float
    """What the other moves of the plan would not save without this one; below 0 where it costs more than it saves."""
    price: float
    """The disruption: what the pod is out or doubled while its replacement starts, and the price of any move."""

    @property
    def ratio(self) -> float:
        return self.saved / self.price if self.price > 0 else 0.0


@dataclass(frozen=True, slots=True)
class PlanBenefit:
    """What is expected within the horizon, with the plan and without it (`matching.planning.expectation`)."""

    horizon: float
    """Seconds."""
    without: float
    """Failing pod-minutes if nothing moves."""
    expected: float
    """Failing pod-minutes with the plan."""
    lost_without: float
    """Of all requests, if every pod gets as many: the share of the time in which pods fail."""
    lost: float
    price: float
    """Of all moves of running pods."""
    required_ratio: float
    """What the planner demands of `ratio`; 0 for planners that do not weigh benefit."""

    @property
    def saved(self) -> float:
        return self.without - self.expected

    @property
    def ratio(self) -> float:
        return self.saved / self.price if self.price > 0 else 0.0


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """`source` is None for a pending pod. `rank` is the target's position (from 1) in the pod's preferences."""

    pod: str
    uid: str
    source: str | None
    target: str
    rank: int
    reasons: tuple[str, ...]
    rejected: tuple[Rejected, ...] = ()
    strategy: Strategy = Strategy.EVICT
    benefit: MoveBenefit | None = None
    """None for a pending pod: binding it disrupts nothing."""


@dataclass(frozen=True, slots=True)
class Stay:
    pod: str
    uid: str
    node: str
    reason: str


class Stays(Sequence[Stay]):
    """A line for every pod that stays. In a large cluster that is nearly every pod, and saying why takes as long as
    the plan. So who stays where is known at once, and the lines are written when they are first read."""

    def __init__(self, pods: Sequence[Pod], write: Callable[[Sequence[int]], list[Stay]]) -> None:
        """`write`: the lines of the pods at these positions."""
        self._pods, self._write = pods, write

    @cached_property
    def _written(self) -> tuple[Stay, ...]:
        return tuple(self._write(range(len(self._pods))))

    def ends(self) -> tuple[list[str], list[str]]:
        """The names of the pods, and their nodes."""
        return [pod.key for pod in self._pods], [pod.node or "" for pod in self._pods]

    def of(self, uids: Collection[str]) -> list[Stay]:
        """The lines of some pods."""
        return self._write([at for at, pod in enumerate(self._pods) if pod.uid in uids]) if uids else []

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[Stay]:
        return iter(self._written)

    @overload
    def __getitem__(self, at: int) -> Stay: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Stay, ...]: ...
    def __getitem__(self, at: int | slice) -> Stay | tuple[Stay, ...]:
        return self._written[at]

    def __eq__(self, other: object) -> bool:
        return self._written == tuple(other) if isinstance(other, Stays | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._written)

    def __repr__(self) -> str:
        return repr(self._written)


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A pod that ends without a node. A pod with a `source` runs there now and is dumped, which only happens where
    dumping is allowed."""

    pod: str
    uid: str
    reason: str
    rejected: tuple[Rejected, ...] = ()
    source: str | None = None


class BlockingCause(StrEnum):
    """Why a blocking pair is left."""

    BUDGET = "budget"
    NOBODY_LEFT_OUT = "nobodyLeftOut"
    NO_STABLE_MATCHING = "noStableMatching"
    BETWEEN_PODS = "betweenPods"
    """Inter-pod constraints: a stable matching may not exist, and each move must be possible at its turn."""
    MOVE_ORDER = "moveOrder"
    """The pod stays or goes elsewhere, because its move cannot be carried out in the order of the plan."""
    NOT_WORTH_IT = "notWorthIt"
    """The moves that would resolve it neither lower the overload nor help an unhappy pod."""
    NARROWER = "narrowerMatching"
    """Only some pods were matched, because that helps as much with fewer moves: a nearer fit alone is no reason."""
    FEWEST_MOVES = "fewestMoves"
    """No more moves than it takes to make the unhappy pods happy (scope affected)."""
    DISPLACEMENT = "displacement"
    """Pods proposed and displaced each other as in the paper, which with sizes can leave such pairs."""
    NOT_BY_PREFERENCE = "notByPreference"
    """The planner has another objective than the preferences of pods and nodes."""


@dataclass(frozen=True, slots=True)
class BlockingPair:
    pod: str
    node: str
    cause: BlockingCause


@dataclass(frozen=True, slots=True)
class BlockingPairs:
    named: tuple[BlockingPair, ...] = ()
    """The first of them, by node and rank."""
    unnamed: int = 0
    """How many more there are."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """Whether the plan can be carried out is known at once. The blocking pairs are counted when they are first asked
    for: in a large cluster that takes longer than the plan, and acting need not wait for it."""

    feasible: bool
    violations: tuple[str, ...]
    count: Callable[[], BlockingPairs]

    @cached_property
    def pairs(self) -> BlockingPairs:
        return self.count()

    @property
    def blocking(self) -> tuple[BlockingPair, ...]:
        return self.pairs.named

    @property
    def blocking_pairs(self) -> int:
        return len(self.pairs.named) + self.pairs.unnamed

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Certificate):
            return NotImplemented
        return (self.violations, self.pairs) == (other.violations, other.pairs)

    def __hash__(self) -> int:
        return hash((self.violations, self.pairs))


@dataclass(frozen=True, slots=True)
class PowerUse:
    """What the nodes draw, by a linear model (`matching.planning.power`)."""

    watts: float
    idle: tuple[str, ...]
    """Nodes without a pod that could run elsewhere: they could be switched off."""
    idle_watts: float
    """The part of `watts` that those draw."""


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures of a placement, before or after the plan. Loads are peaks as shares of the node's room, worst axis."""

    node_load: dict[str, float]
    spread: float
    """Highest less lowest load of the ready nodes."""
    overloaded: tuple[str, ...]
    """Nodes whose load leaves less than the headroom free."""
    pending: int
    power: PowerUse | None = None
    """None where the power of a node is not known."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A constraint without which pods could be cured."""

    constraint: str
    workload: str
    pods: int


@dataclass(frozen=True, slots=True)
class Missing:
    """Why pods stay unhappy although they may move: no placement that the planner knows of helps them."""

    pods: tuple[str, ...]
    amounts: Mapping[str, float]
    """By axis, in its unit: what the nodes of these pods want beyond their headroom."""
    node_like: str = ""
    """The name of a node; one more like it would cure `cured` of the pods."""
    cured: int = 0
    relaxations: tuple[Relaxation, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    planner: str
    moves: tuple[PlannedMove, ...]
    stays: tuple[Stay, ...] | Stays
    """A tuple where the plan was read from JSON."""
    unplaced: tuple[Unplaced, ...]
    certificate: Certificate
    before: Measures
    after: Measures
    notes: tuple[str, ...] = ()
    benefit: PlanBenefit | None = None
    """None in plans that were made elsewhere or before there was one."""
    missing: Missing | None = None
    """None when no unhappy pod that may move is left, and for planners that do not weigh benefit."""

    def why_stays(self, uids: Collection[str]) -> dict[str, str]:
        """By UID; of those of the pods that stay."""
        lines = self.stays.of(uids) if isinstance(self.stays, Stays) else self.stays
        return {stay.uid: stay.reason for stay in lines if stay.uid in uids}

    @property
    def dumped(self) -> tuple[Unplaced, ...]:
        """Running pods that would lose their node."""
        return tuple(left for left in self.unplaced if left.source is not None)


class Promise(StrEnum):
    """What every planner guarantees, unless it follows a source that does not and says so in `waives`."""

    FEASIBLE = "feasible"
    """Every move would pass kube-scheduler."""
    NOBODY_LEFT_OUT = "nobodyLeftOut"
    """No running pod loses its node."""
    NEVER_WORSE = "neverWorse"
    """Not worse than doing nothing on the planner's own objective."""
    BUDGETS = "budgets"
    """Never more moves than the options allow."""
    EXECUTABLE = "executable"
    """Every listed move can be carried out in the plan's order: with the moves before it done, its target takes it."""
    DETERMINISTIC = "deterministic"
    """The same problem gives the same plan."""
    SCOPE = "scope"
    """Of the running pods, only those move that the scope allows."""
    RESTRAINT = "restraint"
    """Used only where a move can help, and not for a pod that was just moved."""


class Planner(Protocol):
    """What a plug-in of the entry-point group `rematch.planners` offers.

    A frozen dataclass: its fields are its parameters, each with a default; `matching.parameters` reads and checks
    them. A value that the type allows and the planner does not is a ParameterError, raised in `__post_init__`.
    """

    name: ClassVar[str]
    waives: ClassVar[frozenset[Promise]]

    def plan(self, problem: Problem) -> Plan: ...
