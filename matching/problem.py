"""The problem: which pods, which nodes, what each needs and has. Values only; nothing here decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from matching.latency import Latency

_NO_LABELS: Mapping[str, str] = {}

Amounts = tuple[float, ...]
"""One number per axis of the problem, in the axis' own unit (cores, bytes); shares are made inside, once."""


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
    """Pods by their labels and namespaces, and the node label whose value says what is the same place.

    Neither namespaces nor a selector of them means the namespace of the pod that has the rule. matchLabelKeys and
    mismatchLabelKeys are part of the selector already, as the API server writes them.
    """

    topology_key: str
    selector: Selector | None = None
    """None selects nobody."""
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
    """nodeAffinityPolicy: only nodes that the pod's nodeSelector and node affinity admit are looked at."""
    honor_taints: bool = False
    """nodeTaintsPolicy: only nodes whose taints the pod tolerates are looked at."""


@dataclass(frozen=True, slots=True)
class HostPort:
    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"
    """0.0.0.0 stands for every address of the node."""


@dataclass(frozen=True, slots=True)
class Preferred:
    """Wishes: they enter the preference (`Options.soft_weight`) and never reject. Weights as in the API, 1 to 100."""

    nodes: tuple[tuple[int, Term], ...] = ()
    with_pods: tuple[tuple[int, PodTerm], ...] = ()
    apart_from: tuple[tuple[int, PodTerm], ...] = ()
    spread: tuple[Spread, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """What a pod's spec says about nodes and neighbours; hashable, so that pods of one template are judged once.

    Pods of one template should share one Rules value: it is looked up by identity first.
    """

    tolerations: tuple[Toleration, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[Term, ...] | None = None
    """ORed terms; None means no required node affinity, an empty tuple matches no node."""
    volumes: tuple[tuple[Term, ...], ...] = ()
    """Node affinity of each bound volume, ORed terms; every volume must be reachable."""
    volume_zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Zone and region labels of the bound volumes with the values that each allows."""
    pod_affinity: tuple[PodTerm, ...] = ()
    pod_anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[Spread, ...] = ()
    """DoNotSchedule only; the ScheduleAnyway ones are in `preferred`."""
    ports: tuple[HostPort, ...] = ()
    preferred: Preferred = Preferred()


class Strategy(StrEnum):
    """How a running pod is moved."""

    EVICT = "evict"


@dataclass(frozen=True, slots=True)
class Pod:
    key: str
    """`namespace/name`: what people call it, and the last tie-breaker."""
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
    """What the rules of other pods select it by; pods of one template should share one mapping."""
    leaving: bool = False
    """Being deleted: it holds its room and its ports, and anti-affinity minds it, but a spread does not count it."""

    unknown: tuple[str, ...] = ()
    """Axes on which nothing is known of it; a planner that looks at one of them leaves the pod where it is."""
    strategy: Strategy = Strategy.EVICT

    @property
    def namespace(self) -> str:
        return self.key.partition("/")[0]


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
    """False when there are no fresh metrics: no running pod is moved here, it never reads as idle."""
    background: Amounts = ()
    """Use on the node that belongs to no pod of the problem; empty means none."""
    unknown: tuple[str, ...] = ()
    """Axes on which its capacity is not known; a planner that looks at one of them sends no running pod there."""


class Scope(StrEnum):
    CLUSTER = "cluster"
    """Every movable pod may get another node; inertia keeps the happy ones where they are."""
    AFFECTED = "affected"
    """The fewest moves that make the unhappy pods happy; happy ones move only to make room. `stable` searches for
    them; every other planner takes it as `unhappy`."""
    UNHAPPY = "unhappy"
    """Only unhappy and pending pods are matched."""
    PENDING = "pending"
    """Only pods without a node are matched: what a scheduler does."""


class Availability(StrEnum):
    """The room of a node that a pod compares its usage with."""

    BEFORE = "before"
    """Before anybody is matched: allocatable less what cannot move. Every pod has one list."""
    AFTER = "after"
    """What is left of that when the pod's turn comes: less the usage of the pods that were matched before it."""


class Dumping(StrEnum):
    """What becomes of a running pod for which there is no room by peaks."""

    NEVER = "never"
    """It gets a node with less headroom than wanted."""
    ALLOW = "allow"
    """It is left without a node, as in the paper."""


@dataclass(frozen=True, slots=True)
class Options:
    scope: Scope = Scope.CLUSTER
    inertia: float = 0.2
    """How much nearer another node has to be (in normalised distance) before a happy pod prefers it.

    Above 0, moves have a price: a happy pod needs no headroom at home, an unhappy one stays when those before it have
    cured its node, and a narrower matching that does as much good with fewer moves is taken. 0 is the paper's way."""
    headroom: float = 0.15
    """Share of a node's room that peaks leave free; given up step by step when the pods do not fit otherwise."""
    max_moves: int | None = None
    """Most moves of running pods in one plan; binding a pending pod disturbs nobody and is not counted."""
    max_moves_per_workload: int | None = None
    max_moves_per_node: int | None = None
    """Of running pods, what leaves the node and what enters it together."""
    max_moves_per_namespace: int | None = None
    relief: float = 0.05
    """An unhappy pod is helped by a node that is less loaded (share of its room) than its own by at least this; so
    much overload, too, has to go for each further move."""
    soft_weight: float = 0.05
    """What breaking all soft wishes of a pod (`Rules.preferred`) adds to the distance of a node; 0 ignores them."""
    availability: Availability = Availability.BEFORE
    dumping: Dumping = Dumping.NEVER
    only_if_better: bool = True
    """Drop a plan that neither lowers the overload nor helps a pod; False asks for the stable matching as it is."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Problem:
    axes: tuple[str, ...]
    pods: tuple[Pod, ...]
    nodes: tuple[Node, ...]
    options: Options = Options()
    needs_from: str = "metrics"
    """Where usage and peak came from (metrics, or requests when there were none); repeated in the plan."""
    hard_only: tuple[str, ...] = ()
    """Axes that can only reject (GPUs, huge pages, ephemeral storage): requests against allocatable count on them.
    They are no part of distances, loads, peaks or spread: inside, their rows of usage, peak and background are 0."""
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels of the namespaces, for rules that select pods by them; a namespace that is missing has none."""
    latency: Latency | None = None
    """What the latency meter told; only the planner `latency` looks at it."""


class ProblemError(ValueError):
    """The problem itself is wrong (negative need, NaN, duplicate name, ...); the message names the object."""
