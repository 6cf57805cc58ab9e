"""Needs and room: builds a matching problem from the pods, nodes and reservations of a snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from matching.feasibility import would_take
from matching.problem import Amounts, Options, Problem, Rules, Scope, Strategy, from_columns
from matching.problem import Node as ProblemNode
from matching.problem import Pod as ProblemPod
from reactor.cluster.pod_constraints import namespace_labels, rules_of
from reactor.cluster.records import Node, Pod
from reactor.signals.measurements import Usage
from reactor.signals.workloads import workload_key
from reactor.state.moves import Reservation
from reactor.state.snapshot import MEASURED, Needs, Snapshot

_POD_COUNT = "pods"
"""A node's limit of pods is not an axis: every pod takes one."""
_DEFAULT_MAX_PODS = 110.0

_Row = tuple[Pod, str | None, str, bool, Rules]
"""Pod, its node, why it is fixed, whether it is happy, its rules."""

_Needs = tuple[Amounts, Amounts, Amounts]
"""Request, usage and peak."""


class ProblemBuilder:
    """Collects pods and reservations. Nodes are added at the end, when the axes are known."""

    def __init__(self, snapshot: Snapshot, only: Collection[str] | None = None) -> None:
        """`only`: the names of the nodes that matter; None means all."""
        self._snapshot = snapshot
        nodes = snapshot.cluster.nodes
        self._nodes: list[Node] = [nodes[name] for name in (nodes if only is None else only) if name in nodes]
        self._rows: list[_Row] = []
        self._reservations: list[Reservation] = []
        self._equal_rules: dict[Rules, Rules] = {}
        self._requests: dict[int, Amounts] = {}
        """By the identity of the mapping, which the pods of a template share."""

    def add(self, pod: Pod, *, fixed: str = "", happy: bool = True) -> None:
        self._rows.append((pod, pod.node, fixed, happy, self._rules(pod)))

    def add_all(self, pods: Sequence[Pod], fixed: Sequence[str], happy: Sequence[bool]) -> None:
        """`add` for very many pods."""
        rules = [self._rules(pod) if pod.pvcs else pod.rules for pod in pods]
        self._rows += zip(pods, [pod.node for pod in pods], fixed, happy, rules, strict=True)

    def reserve(self, reservation: Reservation) -> None:
        self._reservations.append(reservation)

    def fits(self, pod: Pod, target: str) -> bool:
        """Whether the target would take the pod, as if it were pending."""
        self._rows.append((pod, None, "", True, self._rules(pod)))
        return would_take(self.problem(Options(scope=Scope.PENDING)), pod.uid, target)

    def problem(self, options: Options) -> Problem:
        axes = self._axes()
        self._requests.clear()
        pods = self._pods(axes)
        used = _used_by_node(pods)
        reserved = [self._stand_in(axes, each) for each in self._reservations]
        return Problem(
            axes=axes,
            pods=(*pods, *reserved),
            nodes=tuple(self._node(axes, node, used.get(node.name)) for node in self._nodes),
            options=options,
            needs_from=self._snapshot.needs,
            hard_only=axes[len(MEASURED) :],
            namespaces=namespace_labels(self._snapshot.cluster),
        )

    def _axes(self) -> tuple[str, ...]:
        """Other requested resources (GPUs, huge pages, ephemeral storage) are hard constraints only: they are not
        measured."""
        stated = {id(pod.requests): pod.requests for pod in [row[0] for row in self._rows]}
        requested = {axis for requests in stated.values() for axis, amount in requests.items() if amount > 0}
        return MEASURED + tuple(sorted(requested - {*MEASURED, _POD_COUNT}))

    def _rules(self, pod: Pod) -> Rules:
        """Pods with equal rules share one value."""
        rules = rules_of(pod, self._snapshot.cluster)
        return rules if rules is pod.rules else self._equal_rules.setdefault(rules, rules)

    def _pods(self, axes: tuple[str, ...]) -> list[ProblemPod]:
        needs = list(self._running_needs(axes))
        if len(needs) < len(self._rows):
            running = iter(needs)
            needs = [self._pending_needs(axes, row[0]) if row[1] is None else next(running) for row in self._rows]
        return _problem_pods(self._rows, needs)

    def _request(self, axes: tuple[str, ...], pod: Pod) -> Amounts:
        key = id(pod.requests)
        found = self._requests.get(key)
        if found is None:
            found = self._requests[key] = _amounts(axes, pod.requests)
        return found

    def _running_needs(self, axes: tuple[str, ...]) -> Iterable[_Needs]:
        """Request, usage and peak of every pod with a node, in order. Without fresh measurements the request counts:
        unknown never reads as idle."""
        pods = [row[0] for row in self._rows if row[1] is not None]
        requests = [self._request(axes, pod) for pod in pods]
        if self._snapshot.needs is Needs.REQUESTS or not pods:
            return zip(requests, requests, requests, strict=True)
        flat = np.fromiter(chain.from_iterable(requests), np.float64, len(requests) * len(axes))
        request = flat.reshape(len(requests), len(axes))
        measured = request[:, : len(MEASURED)]
        usage, peak = self._snapshot.usage.needs([pod.uid for pod in pods])
        known = ~np.isnan(usage).any(axis=1, keepdims=True)
        expected = np.where(np.isnan(peak), measured, peak)
        used = np.where(known, usage, np.maximum(measured, expected))
        return zip(requests, _rows(used, request), _rows(np.maximum(used, expected), request), strict=True)

    def _pending_needs(self, axes: tuple[str, ...], pod: Pod) -> _Needs:
        """A pod that has not run yet needs what its workload needs."""
        request = self._request(axes, pod)
        if self._snapshot.needs is Needs.REQUESTS:
            return request, request, request
        peak = self._snapshot.usage.workload_peak(workload_key(pod))
        expected = _over(request, (peak.cpu, peak.memory))
        return request, expected, expected

    def _stand_in(self, axes: tuple[str, ...], reservation: Reservation) -> ProblemPod:
        """A stand-in for the replacement, with the labels, rules, workload and requests of the pod that it replaces.
        The needs are those of its workload, as for every pod that has not run yet."""
        move, pod = reservation.move, reservation.pod
        fixed = f"reserved for the replacement of {pod.key}"
        (stand_in,) = _problem_pods([(pod, None, fixed, True, pod.rules)], [self._pending_needs(axes, pod)])
        name = f"reservation:{move.id}"
        key = f"{pod.namespace}/{name}"
        return replace(stand_in, key=key, uid=name, node=move.target, priority=0, leaving=False)

    def _node(self, axes: tuple[str, ...], node: Node, used: Amounts | None) -> ProblemNode:
        allocatable = _amounts(axes, node.allocatable)
        usage = None if self._snapshot.needs is Needs.REQUESTS else self._snapshot.usage.node_usage(node.name)
        room = all(amount > 0 for amount in allocatable[: len(MEASURED)])
        return ProblemNode(
            name=node.name,
            allocatable=allocatable,
            max_pods=int(node.allocatable.get("pods", _DEFAULT_MAX_PODS)),
            labels=node.labels,
            taints=node.taints,
            unschedulable=node.unschedulable,
            ready=node.ready and room,
            measured=usage is None or usage.known,
            background=_background(axes, node, usage, used) if usage is not None and usage.known else (),
        )


def fits_now(pod: Pod, target: str, snapshot: Snapshot, reservations: Sequence[Reservation]) -> bool:
    """Whether the target would take the pod now, counting Terminating pods and the `reservations` of other moves.

    Only the pods of the target matter, unless there are rules between pods: these depend on other nodes, too.
    """
    if target not in snapshot.cluster.nodes:
        return False
    elsewhere = snapshot.cluster.seen_by_rules
    builder = ProblemBuilder(snapshot, None if elsewhere else (target,))
    for other in {other.uid: other for other in (*snapshot.cluster.pods_on(target), *elsewhere)}.values():
        if other.node is not None and not other.finished and other.uid != pod.uid:
            builder.add(other, fixed="is there already")
    for reservation in reservations:
        if reservation.move.target == target or elsewhere:
            builder.reserve(reservation)
    return builder.fits(pod, target)


def _background(axes: tuple[str, ...], node: Node, usage: Usage, used: Amounts | None) -> Amounts:
    """What the node uses beyond its pods and beyond the difference between capacity and allocatable."""
    measured = {"cpu": usage.cpu.fresh, "memory": usage.memory.fresh}
    background = []
    for at, axis in enumerate(axes):
        total = measured.get(axis)
        system_reserved = node.capacity.get(axis, 0.0) - node.allocatable.get(axis, 0.0)
        pods = used[at] if used is not None else 0.0
        background.append(0.0 if total is None else max(0.0, total - pods - max(0.0, system_reserved)))
    return tuple(background)


def _problem_pods(rows: Sequence[_Row], needs: Sequence[_Needs]) -> list[ProblemPod]:
    if not rows:
        return []
    pods, nodes, fixed, happy, rules = zip(*rows, strict=True)
    request, usage, peak = zip(*needs, strict=True)
    return from_columns(
        ProblemPod,
        {
            "key": [pod.key for pod in pods],
            "uid": [pod.uid for pod in pods],
            "usage": usage,
            "request": request,
            "peak": peak,
            "node": nodes,
            "workload": [workload_key(pod) for pod in pods],
            "priority": [pod.priority for pod in pods],
            "happy": happy,
            "fixed": fixed,
            "rules": rules,
            "labels": [pod.labels for pod in pods],
            "leaving": [pod.deleting is not None for pod in pods],
            "unknown": [()] * len(pods),
            "strategy": [Strategy.EVICT] * len(pods),
        },
    )


def _amounts(axes: tuple[str, ...], quantities: Mapping[str, float]) -> Amounts:
    return tuple(quantities.get(axis, 0.0) for axis in axes)


def _over(base: Amounts, measured: tuple[float | None, float | None]) -> Amounts:
    """The measured axes from the measurement where there is one, the others from `base`."""
    return (
        *(b if m is None else m for b, m in zip(base[: len(MEASURED)], measured, strict=True)),
        *base[len(MEASURED) :],
    )


def _rows(measured: NDArray[np.float64], request: NDArray[np.float64]) -> Iterable[Amounts]:
    """The measured axes, and the others as requested."""
    columns = (*measured.T, *request.T[len(MEASURED) :])
    return zip(*(column.tolist() for column in columns), strict=True)


def _used_by_node(pods: list[ProblemPod]) -> dict[str, Amounts]:
    numbers: dict[str, int] = {}
    bound = [pod for pod in pods if pod.node is not None]
    at = [numbers.setdefault(pod.node or "", len(numbers)) for pod in bound]
    if not bound:
        return {}
    axes = len(bound[0].usage)
    usage = np.fromiter(chain.from_iterable(pod.usage for pod in bound), np.float64, len(bound) * axes)
    sums = [np.bincount(at, weights=row) for row in usage.reshape(-1, axes).T]
    return dict(zip(numbers, zip(*(row.tolist() for row in sums), strict=True), strict=True))
