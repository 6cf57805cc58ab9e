"""A problem as arrays: checked, sorted by name (so the order of the input never matters), in shares of capacity.

Axis-major, shape (axes, pods) or (axes, nodes); one unit of an axis is the largest allocatable of any node. Requests,
and what they may take of a node, are whole numbers instead (`whole_units`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.cached_property import cached_property
from matching.constraints import resources
from matching.constraints.default_spread import DefaultSpread, default_spread
from matching.constraints.inter_pod import InterPodConstraints, inter_pod_constraints
from matching.constraints.soft import SoftConstraints, soft_constraints
from matching.constraints.taints import cordoned
from matching.model.pod_columns import amounts, check_unique, pod_columns
from matching.problem import Node, Options, Pod, Problem, ProblemError, Rules, Scope
from matching.whole_units import whole_units

ALWAYS_NEEDED = ("cpu", "memory")


@dataclass(frozen=True)
class Arrays:
    axes: tuple[str, ...]
    options: Options
    pods: tuple[Pod, ...]
    nodes: tuple[Node, ...]
    unit: Floats
    """What one share of each axis is in the unit of the axis."""
    request_unit: Floats
    """What 1 of `request` and `requestable` is in the unit of the axis."""
    usage: Floats
    usual: Floats
    """`Pod.usual`: for distances, and for the room that they are measured to."""
    request: Floats
    """Whole numbers: sums and comparisons are exact."""
    peak: Floats
    rank_cpu: Floats
    """`Pod.rank_cpu`"""
    priority: Ints
    rule_class: Ints
    """By pod the class of its rules: pods with equal rules are of one class."""
    all_rules: tuple[Rules, ...]
    """By class."""
    current: Ints
    """Index of the node a pod runs on; NOWHERE when pending or on a node that is not in the problem."""
    fixed: Mask
    without_node: Mask
    """Has no node at all, not even one outside the problem."""
    pending: Mask
    """May be placed and has no node yet."""
    unhappy: Mask
    headroom_exempt: Mask
    """Happy, with inertia above 0: needs no headroom on its current node."""
    allocatable: Floats
    requestable: Floats
    """Allocatable in the whole units of `request`."""
    background: Floats
    max_pods: Ints
    open_to_moves: Mask
    """By node: whether running pods may be moved there. It has fresh metrics and is not cordoned."""
    faulty: Mask
    """By node: `Node.faulty`."""
    hard_only: Mask
    """By axis: only requests count; usage, peak and background are 0 there."""
    inter_pod: InterPodConstraints | None
    """None when no pod has any. `Ledger` applies them."""
    soft: SoftConstraints | None
    """None when no pod has any, or when `soft_weight` is 0."""
    default_spread: DefaultSpread | None
    """The same."""

    @cached_property
    def least_free(self) -> Floats:
        """What must be free on each axis for a pod to fit by requests."""
        return resources.least_free(self.request)

    @cached_property
    def least_spare(self) -> Floats:
        """What the spare quota must exceed on each axis for a pod to fit by peaks."""
        return resources.least_spare(self.peak)

    @cached_property
    def numpy_only(self) -> Mask:
        """Unhappy pods, pods with soft constraints and pods that are spread: their preferences are not by distance
        alone, so the compiled loops do not handle them."""
        found = self.unhappy if self.soft is None else self.unhappy | self.soft.has_any
        return found if self.default_spread is None else found | self.default_spread.applies

    @cached_property
    def of_node(self) -> Mask:
        """`Pod.of_node`"""
        return np.fromiter((pod.of_node for pod in self.pods), np.bool_, len(self.pods))

    @cached_property
    def by_workload(self) -> Mapping[str, Sequence[int]]:
        """The pods of each workload; workloads of several namespaces may have the same name."""
        grouped: defaultdict[str, list[int]] = defaultdict(list)
        for at, pod in enumerate(self.pods):
            grouped[pod.workload].append(at)
        return grouped

    @cached_property
    def taken_now(self) -> Taken:
        """What the pods take of their current nodes."""
        return taken(self, self.current)


def arrays_of(problem: Problem) -> Arrays:
    """Raise ProblemError, naming the object, when the problem is not valid."""
    _check_options(problem.options)
    if not problem.axes:
        raise ProblemError("the problem has no axes; name at least one, such as cpu")
    check_unique("axis", problem.axes)
    for axis in problem.hard_only:
        if axis not in problem.axes:
            raise ProblemError(f"hard_only names {axis!r}, which is none of the axes {problem.axes}")
    if all(axis in problem.hard_only for axis in problem.axes):
        raise ProblemError(f"all axes {problem.axes} are hard_only; at least one has to be measured")
    check_unique("node", [node.name for node in problem.nodes])
    return _assemble(problem, tuple(sorted(problem.nodes, key=attrgetter("name"))))


def movable(arrays: Arrays, scope: Scope) -> Mask:
    """The pods of a scope; all others cannot move."""
    if scope is Scope.PENDING:
        return arrays.pending.copy()
    if scope in (Scope.UNHAPPY, Scope.AFFECTED):
        return arrays.pending | (arrays.unhappy & ~arrays.fixed)
    return ~arrays.fixed


def share_of_room(load: Floats, allocatable: Floats) -> Floats:
    """Load as a share of the node's room. Load without any room counts as more than full."""
    without_room = np.where(load > 0, 1.0 + load, 0.0)
    return np.divide(load, allocatable, out=without_room, where=allocatable > 0)


def sum_by_node(amounts: Floats, at: Ints, nodes: int) -> Floats:
    """The sum of the pods' amounts per node, with the pods as in `at`; one row per axis."""
    placed = np.flatnonzero(at != NOWHERE)
    rows = [np.bincount(at[placed], weights=row[placed], minlength=nodes) for row in amounts]
    return np.array(rows, dtype=np.float64).reshape(len(amounts), nodes)


@dataclass(frozen=True, slots=True)
class Taken:
    """Requests and peaks by axis and node, pods by node."""

    request: Floats
    peak: Floats
    slots: Ints


def taken(arrays: Arrays, at: Ints) -> Taken:
    nodes = len(arrays.nodes)
    placed = at[at != NOWHERE]
    slots = np.bincount(placed, minlength=nodes).astype(np.int64)
    return Taken(sum_by_node(arrays.request, at, nodes), sum_by_node(arrays.peak, at, nodes), slots)


def _assemble(problem: Problem, nodes: tuple[Node, ...]) -> Arrays:
    axes = problem.axes
    nothing = (0.0,) * len(axes)
    allocatable = amounts(nodes, "allocatable", [node.allocatable for node in nodes], axes)
    background = amounts(nodes, "background", [node.background or nothing for node in nodes], axes)
    _check_nodes(nodes, allocatable, axes)
    columns = pod_columns(problem.pods, axes)
    pods = columns.pods
    whole = whole_units(columns.request, allocatable)
    unit = allocatable.max(axis=1, initial=0.0)
    unit[unit == 0] = 1.0
    hard_only = np.array([axis in problem.hard_only for axis in axes], dtype=bool)
    measured_unit = np.where(hard_only, np.inf, unit)[:, None]
    current = _current_nodes(pods, nodes)
    without_node = columns.without_node
    unhappy = ~columns.happy & (current != NOWHERE)
    pending = without_node & ~columns.fixed
    soft_weight = problem.options.soft_weight
    soft = soft_constraints(pods, columns.all_rules, nodes, problem.namespaces, current) if soft_weight else None
    usage = columns.usage / measured_unit
    return Arrays(
        axes=axes,
        options=problem.options,
        pods=pods,
        nodes=nodes,
        unit=unit,
        request_unit=whole.unit,
        usage=usage,
        usual=usage if columns.usual is columns.usage else columns.usual / measured_unit,
        request=whole.request,
        peak=columns.peak / measured_unit,
        current=current,
        fixed=columns.fixed | ((current == NOWHERE) & ~without_node),
        without_node=without_node,
        pending=pending,
        unhappy=unhappy,
        headroom_exempt=~unhappy & (current != NOWHERE) & (problem.options.inertia > 0),
        allocatable=allocatable / unit[:, None],
        requestable=whole.allocatable,
        background=background / measured_unit,
        max_pods=np.array([node.max_pods for node in nodes], dtype=np.int64),
        open_to_moves=np.array([node.measured and not cordoned(node) for node in nodes], dtype=bool),
        faulty=np.array([node.faulty for node in nodes], dtype=bool),
        hard_only=hard_only,
        rank_cpu=columns.rank_cpu,
        priority=columns.priority,
        rule_class=columns.rule_class,
        all_rules=columns.all_rules,
        inter_pod=inter_pod_constraints(pods, columns.examples, nodes, problem.namespaces),
        soft=soft,
        default_spread=default_spread(pods, nodes, current, pending | unhappy, soft) if soft_weight else None,
    )


def _current_nodes(pods: Sequence[Pod], nodes: Sequence[Node]) -> Ints:
    index = {node.name: at for at, node in enumerate(nodes)}
    return np.fromiter(map(index.get, [pod.node or "" for pod in pods], repeat(NOWHERE)), np.int64, len(pods))


def _check_nodes(nodes: Sequence[Node], allocatable: Floats, axes: tuple[str, ...]) -> None:
    for at, node in enumerate(nodes):
        if node.max_pods < 0:
            raise ProblemError(f"node {node.name}: max_pods is {node.max_pods}; it must be at least 0")
        if not node.ready or node.unschedulable:
            continue
        empty = [axis for axis, amount in zip(axes, allocatable[:, at], strict=True) if amount == 0]
        if len(empty) == len(axes) or any(axis in ALWAYS_NEEDED for axis in empty):
            raise ProblemError(
                f"node {node.name}: allocatable {', '.join(empty)} is 0 on a ready, schedulable node;"
                " report its capacity, or mark it unschedulable or not ready"
            )


def _check_options(options: Options) -> None:
    if not 0 <= options.headroom < 1:
        raise ProblemError(f"headroom is {options.headroom}; it must be at least 0 and below 1")
    if not 0 < options.threshold <= 1:
        raise ProblemError(f"threshold is {options.threshold}; it must be above 0 and at most 1")
    for name in ("inertia", "relief", "soft_weight", "horizon", "required_ratio", "move_price"):
        value = getattr(options, name)
        if not (np.isfinite(value) and value >= 0):
            raise ProblemError(f"{name} is {value}; it must be a finite number of at least 0")
    for name in ("max_moves", "max_moves_per_workload", "max_moves_per_node", "max_moves_per_namespace"):
        most = getattr(options, name)
        if most is not None and most < 0:
            raise ProblemError(f"{name} is {most}; it must be at least 0")
