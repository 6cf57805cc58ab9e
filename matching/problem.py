"""The problem: which pods, which nodes, what each needs and has. Values only; nothing here decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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
class Rules:
    """What a pod's spec says about nodes; hashable, so that pods of one template are judged once."""

    tolerations: tuple[Toleration, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[Term, ...] | None = None
    """ORed terms; None means no required node affinity, an empty tuple matches no node."""


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


class Scope(StrEnum):
    CLUSTER = "cluster"
    """Every movable pod may get another node; inertia keeps the happy ones where they are."""
    UNHAPPY = "unhappy"
    """Only unhappy and pending pods are matched."""
    PENDING = "pending"
    """Only pods without a node are matched: what a scheduler does."""


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
    relief: float = 0.05
    """An unhappy pod is helped by a node that is less loaded (share of its room) than its own by at least this; so
    much overload, too, has to go for each further move."""
    only_if_better: bool = True
    """Drop a plan that neither lowers the overload nor helps a pod; False asks for the stable matching as it is."""


@dataclass(frozen=True, slots=True)
class Problem:
    axes: tuple[str, ...]
    pods: tuple[Pod, ...]
    nodes: tuple[Node, ...]
    options: Options = Options()
    needs_from: str = "metrics"
    """Where usage and peak came from (metrics, or requests when there were none); repeated in the plan."""


class ProblemError(ValueError):
    """The problem itself is wrong (negative need, NaN, duplicate name, ...); the message names the object."""
