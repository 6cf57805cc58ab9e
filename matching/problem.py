"""The problem: which pods, which nodes, what each needs and has. Values only; nothing here decides."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import repeat
from typing import Any, TypeVar

from matching.failure_curve import FailureCurve

T = TypeVar("T")

TOLERANCE = 1e-9
"""Shares closer than this are equal: sums of decimal fractions are not exact."""

USUAL_STARTUP_SECONDS = 30.0
"""Of a pod whose workload was not seen starting; rather too long, so that its moves cost rather too much."""

_NO_LABELS: Mapping[str, str] = {}

Amounts = tuple[float, ...]
"""One number per axis of the problem, in the axis' own unit (cores, bytes); shares are made inside, once. Requests and
allocatable count in whole thousandths, rounded up (`matching.whole_units`)."""


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Toleration:
    """`operator` is Equal or Exists; an empty key with Exists tolerates everything; an empty effect any effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One matchExpressions entry: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Term:
    """One nodeSelectorTerm: all of its requirements hold. An empty term matches no node, as in Kubernetes."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector: all of its requirements hold (In, NotIn, Exists, DoesNotExist). Empty selects everything."""

    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A pod affinity term: pods by labels and namespaces, and the node label that defines the topology domains.

    Without namespaces and namespace selector the term means the namespace of the pod that has it. matchLabelKeys and
    mismatchLabelKeys are already part of the selector, as the API server writes them.
    """

    topology_key: str
    selector: Selector | None = None
    """None selects no pod."""
    namespaces: tuple[str, ...] = ()
    namespace_selector: Selector | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """A topologySpreadConstraint. Counts pods of the pod's own namespace; matchLabelKeys are part of the selector."""

    topology_key: str
    selector: Selector | None = None
    max_skew: int = 1
    min_domains: int = 1
    honor_affinity: bool = True
    """nodeAffinityPolicy: only nodes that the pod's nodeSelector and node affinity admit are eligible."""
    honor_taints: bool = False
    """nodeTaintsPolicy: only nodes whose taints the pod tolerates are eligible."""


@dataclass(frozen=True, slots=True)
class HostPort:
    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"
    """0.0.0.0 stands for every address of the node."""


@dataclass(frozen=True, slots=True)
class Preferred:
    """Soft constraints: they enter the preference (`Options.soft_weight`) and never reject. Weights are 1 to 100."""

    nodes: tuple[tuple[int, Term], ...] = ()
    with_pods: tuple[tuple[int, PodTerm], ...] = ()
    apart_from: tuple[tuple[int, PodTerm], ...] = ()
    spread: tuple[Spread, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """The scheduling constraints of a pod. Hashable, so that pods of one template are evaluated once.

    Pods of one template should share one Rules value: it is looked up by identity first.
    """

    tolerations: tuple[Toleration, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[Term, ...] | None = None
    """ORed terms; None means no required node affinity, an empty tuple matches no node."""
    volumes: tuple[tuple[Term, ...], ...] = ()
    """Node affinity of each bound PV, ORed terms; every PV must be reachable."""
    volume_zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Zone and region labels of the bound PVs with the values that each allows."""
    pod_affinity: tuple[PodTerm, ...] = ()
    pod_anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[Spread, ...] = ()
    """DoNotSchedule only; the ScheduleAnyway ones are in `preferred`."""
    ports: tuple[HostPort, ...] = ()
    features: tuple[str, ...] = ()
    """Features that the node has to declare (`Node.features`)."""
    avoided: tuple[str, ...] = ()
    """Names of nodes that the pod is not moved to, because that did not help lately. It may stay on them."""
    preferred: Preferred = Preferred()


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume that a CSI driver attaches to nodes."""

    driver: str
    handle: str


class Strategy(StrEnum):
    """How a running pod is moved."""

    EVICT = "evict"
    SCALE_SURGE = "scaleSurge"
    """One replica more, then one less: the old pod runs until the new one is available."""
    RELEASE_SURGE = "releaseSurge"
    """Its ReplicaSet lets the old pod go and makes another one; the old pod runs until that one is available."""

    @property
    def surges(self) -> bool:
        """Whether the old pod still runs while the new one starts."""
        return self is not Strategy.EVICT


@dataclass(frozen=True, slots=True)
class Pod:
    key: str
    """`namespace/name`; also the last tie-breaker."""
    uid: str
    usage: Amounts
    request: Amounts
    peak: Amounts
    node: str | None = None
    workload: str = ""
    """Pods of one workload are replicas of each other."""
    priority: int = 0
    happy: bool = True
    fixed: str = ""
    """Why this pod may not be moved; empty when it may. A fixed pod without a node is not placed."""
    rules: Rules = Rules()
    labels: Mapping[str, str] = field(default_factory=lambda: _NO_LABELS)
    """Pods of one template should share one mapping."""
    leaving: bool = False
    """Being deleted: it still uses its room and ports and counts for anti-affinity, but not for topology spread."""
    unknown: tuple[str, ...] = ()
    """Axes on which nothing is known of it; a planner that uses one of them leaves the pod where it is."""
    strategy: Strategy = Strategy.EVICT
    """A surge takes room on both nodes until it is over."""
    strategy_reason: str = ""
    """Why it is moved in this way, in one line; it becomes a reason of the move."""
    volumes: tuple[Volume, ...] = ()
    """What has to be attached to its node. Where it can be reached from is part of the rules."""
    startup_seconds: float = USUAL_STARTUP_SECONDS
    """From the binding of a replacement until it is Ready."""
    mean: Amounts = ()
    """Mean usage over its history. Empty where there is not enough of it: then its usage counts instead."""
    idle_cpu: float | None = None
    """CPU while unloaded, over its history; only where nodes rank pods by it."""
    of_node: bool = False
    """Belongs to its node, as those of DaemonSets do: a node with no other pods is idle."""

    @property
    def usual(self) -> Amounts:
        """What distances are measured with."""
        return self.mean or self.usage

    @property
    def rank_cpu(self) -> float:
        """Nodes prefer the pod with more of it."""
        return self.usual[0] if self.idle_cpu is None else self.idle_cpu

    @property
    def namespace(self) -> str:
        return self.key.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Power:
    """What a node draws, in watts: linear in its CPU."""

    idle: float
    full: float
    """With all of its CPU in use."""

    def at(self, share: float) -> float:
        """With a share of its CPU in use; more than all of it is all of it."""
        return self.idle + (self.full - self.idle) * min(max(share, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    allocatable: Amounts
    max_pods: int = 110
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    measured: bool = True
    """False without fresh metrics: no running pod is moved here, and the node never counts as idle."""
    background: Amounts = ()
    """Use on the node that belongs to no pod of the problem; empty means none."""
    unknown: tuple[str, ...] = ()
    """Axes on which its capacity is not known; a planner that uses one of them moves no running pod there."""
    features: tuple[str, ...] = ()
    """What the kubelet declares in `status.declaredFeatures`."""
    volume_limits: Mapping[str, int] = field(default_factory=dict)
    """How many volumes of a CSI driver can be attached; a driver that is missing has no limit."""
    attached: tuple[Volume, ...] = ()
    """Volumes that are attached although no pod there uses them. They count as well."""
    faulty: bool = False
    """Its unhappy pods fail by a fault of the node, not by its load: they are better off anywhere else."""
    power: Power | None = None
    """None where it is not known. No planner uses it: plans say what they do to it."""


class Scope(StrEnum):
    CLUSTER = "cluster"
    """Every movable pod may get another node; inertia keeps the happy ones where they are."""
    AFFECTED = "affected"
    """The fewest moves that make the unhappy pods happy; happy ones move only to make room. Only `stable` knows this
    scope; the other planners treat it as `unhappy`."""
    UNHAPPY = "unhappy"
    """Only unhappy and pending pods are matched."""
    PENDING = "pending"
    """Only pods without a node are matched: what a scheduler does."""


class Availability(StrEnum):
    """The room of a node that a pod compares its usage with."""

    BEFORE = "before"
    """Before any pod is matched: allocatable less what cannot move. A pod's preferences do not change."""
    AFTER = "after"
    """What is left of that when the pod's turn comes: less the usage of the pods that were matched before it."""


class Preference(StrEnum):
    """Which of the nodes that cure a pod it gets."""

    NEAREST = "nearest"
    """The nearest fit that keeps its headroom, as in STABLE."""
    CROWD = "crowd"
    """The one where it and the pods there are expected to fail least; of those that are about as good, the nearest."""


class Dumping(StrEnum):
    """What happens to a running pod for which there is no room by peaks."""

    NEVER = "never"
    """It gets a node with less headroom than wanted."""
    ALLOW = "allow"
    """It is left without a node, as in the paper."""


@dataclass(frozen=True, slots=True)
class Options:
    scope: Scope = Scope.CLUSTER
    inertia: float = 0.2
    """How much nearer another node has to be (in normalised distance) before a happy pod prefers it.

    Above 0, moves have a price: a happy pod needs no headroom on its current node, an unhappy one stays when pods that
    left before it have relieved its node, and a narrower matching that helps as much with fewer moves is preferred. At
    0 they have none, as in the paper."""
    headroom: float = 0.15
    """Share of a node's room that peaks leave free; given up step by step when the pods do not fit otherwise."""
    max_moves: int | None = None
    """Most moves of running pods in one plan; binding a pending pod does not count."""
    max_moves_per_workload: int | None = None
    max_moves_per_node: int | None = None
    """Of running pods, what leaves the node and what enters it together."""
    max_moves_per_namespace: int | None = None
    relief: float = 0.05
    """A node helps an unhappy pod when its load (share of its room) is lower than that of the current node by at least
    this. Each further move of a plan has to remove as much overload."""
    soft_weight: float = 0.05
    """What breaking all soft constraints of a pod (`Rules.preferred`) adds to the distance of a node; 0 ignores
    them."""
    availability: Availability = Availability.BEFORE
    dumping: Dumping = Dumping.NEVER
    only_if_better: bool = True
    """Drop a plan that is not worth its moves; False keeps the stable matching as it is."""
    failure_curve: FailureCurve = field(default_factory=FailureCurve)
    """How likely pods fail by the load of their node at peak: what benefit is expected by."""
    threshold: float = 0.9
    """A pod whose probes are expected to succeed less often than this is expected to be unhappy."""
    horizon: float = 1800.0
    """Seconds over which benefit is expected."""
    required_ratio: float = 2.0
    """A move must be expected to save this many times its price in failing pod-minutes."""
    move_price: float = 1.0
    """Pod-minutes that every move costs, on top of what it disrupts: cold caches, risk, attention."""
    preference: Preference = Preference.CROWD


class Role(StrEnum):
    """Of a pod for the planner `latency`."""

    TARGET = "target"
    """The application itself: it only goes to a node that a probe has measured."""
    PROBE = "probe"
    """An echo server that goes to a node to measure its latency."""


@dataclass(frozen=True, slots=True)
class LatencyMeasurement:
    rtt: float
    """Mean round trip in seconds."""
    at: float
    """When it was taken, on the clock of `Latency.now`."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Measured round trips: the input of the planner `latency`. The controller has them from latency meters."""

    now: float
    moved_at: float
    """When the last pod was moved, or when the round began."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """By pod key; the planner ignores pods without a role."""
    last: Mapping[str, LatencyMeasurement] = field(default_factory=dict)
    """The last measurement of each pod, by key; a move drops it."""
    visited: frozenset[str] = frozenset()
    """Nodes that have had a target or a probe in this round; those that have one now always count."""
    known: Mapping[str, float] = field(default_factory=dict)
    """By node: the last round trip that was measured there in this round."""
    left: frozenset[str] = frozenset()
    """Nodes that a target has left in this round; no target goes back to one."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Problem:
    axes: tuple[str, ...]
    pods: tuple[Pod, ...]
    nodes: tuple[Node, ...]
    options: Options = Options()
    needs_from: str = "metrics"
    """Where usage and peak came from (metrics, or requests when there were none); repeated in the plan."""
    estimates: str = ""
    """What means and peaks were estimated from, if not from recent metrics alone; repeated in the plan."""
    hard_only: tuple[str, ...] = ()
    """Axes that can only reject (GPUs, huge pages, ephemeral storage): only requests against allocatable count.
    They are not part of distances, loads, peaks or spread."""
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels of the namespaces, for namespace selectors; a missing namespace has none."""
    latency: Latency | None = None
    """Only the planner `latency` uses it."""


class ProblemError(ValueError):
    """The problem itself is wrong (negative need, NaN, duplicate name, ...); the message names the object."""


def from_columns(kind: type[T], columns: Mapping[str, Sequence[object]]) -> list[T]:
    """Many values of a dataclass with slots, field by field: much faster than one by one. `__init__` does not run, so
    every field needs a column, also one with a default."""
    names: list[str] = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    if columns.keys() != set(names):
        raise ValueError(f"{kind.__name__} has the fields {names}, the columns are {list(columns)}")
    number = len(columns[names[0]])
    blank: Any = object.__new__
    made = list(map(blank, repeat(kind, number)))
    for name in names:
        if len(columns[name]) != number:
            raise ValueError(f"{len(columns[name])} values of {name} for {number} of {kind.__name__}")
        deque(map(getattr(kind, name).__set__, made, columns[name]), maxlen=0)
    return made
