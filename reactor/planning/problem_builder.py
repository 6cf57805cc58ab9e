"""Needs and room: builds a matching problem from the pods, nodes and reservations of a snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from matching.feasibility import would_take
from matching.problem import USUAL_STARTUP_SECONDS, Amounts, Options, Problem, Rules, Scope, Strategy, from_columns
from matching.problem import Node as ProblemNode
from matching.problem import Pod as ProblemPod
from reactor.cluster.pod_constraints import attached_volumes, namespace_labels, rules_of, unused_attachments
from reactor.cluster.records import Node, Pod
from reactor.decision.strategies import Choice
from reactor.signals.measurements import Usage
from reactor.signals.workloads import workload_key
from reactor.state.moves import Reservation
from reactor.state.snapshot import MEASURED, Needs, Snapshot

_POD_COUNT = "pods"
"""A node's limit of pods is not an axis: every pod takes one."""

_Row = tuple[Pod, str | None, str, bool, Rules, Choice]
"""Pod, its node, why it is fixed, whether it is happy, its rules, how it is moved."""

EVICTED = Choice(Strategy.EVICT, "")
"""For pods that do not move: nobody asks how they would be moved."""

_Needs = tuple[Amounts, Amounts, Amounts]
"""Request, usage and peak."""


class ProblemBuilder:
    """Collects pods and reservations. Nodes are added at the end, when the axes are known."""

    def __init__(
        self,
        snapshot: Snapshot,
        only: Collection[str] | None = None,
        avoided: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """`only`: the names of the nodes that matter; None means all. `avoided`: nodes that did not help, by the UID of
        a pod that is not to be moved there."""
        self._avoided = avoided or {}
        self._snapshot = snapshot
        nodes = snapshot.cluster.nodes
        self._nodes: list[Node] = [nodes[name] for name in (nodes if only is None else only) if name in nodes]
        self._rows: list[_Row] = []
        self._reservations: list[Reservation] = []
        self._nominated: list[Pod] = []
        self._equal_rules: dict[Rules, Rules] = {}
        self._requests: dict[int, Amounts] = {}
        """By the identity of the mapping, which the pods of a template share."""
        usage = snapshot.usage
        self._measured_at = {node.name: usage.node_usage(node.name).cpu.at for node in self._nodes}

    def add(self, pod: Pod, *, fixed: str = "", happy: bool = True) -> None:
        self._rows.append((pod, pod.node, fixed, happy, self._rules(pod), EVICTED))

    def add_all(
        self, pods: Sequence[Pod], fixed: Sequence[str], happy: Sequence[bool], choices: Sequence[Choice]
    ) -> None:
        """`add` for very many pods."""
        avoided = self._avoided
        rules = [self._rules(pod) if pod.pvcs or pod.uid in avoided else pod.rules for pod in pods]
        self._rows += zip(pods, [pod.node for pod in pods], fixed, happy, rules, choices, strict=True)

    def reserve(self, reservation: Reservation) -> None:
        self._reservations.append(reservation)

    def hold(self, nominated: Iterable[Pod]) -> None:
        """Pending pods count on the node that they are nominated to, unless they were added or have a reservation."""
        self._nominated += nominated

    def fits(self, pod: Pod, target: str) -> bool:
        """Whether the target would take the pod, as if it were pending."""
        self._rows.append((pod, None, "", True, self._rules(pod), EVICTED))
        return would_take(self.problem(Options(scope=Scope.PENDING)), pod.uid, target)

    def problem(self, options: Options) -> Problem:
        axes = self._axes()
        self._requests.clear()
        pods = self._pods(axes)
        used = _used_by_node([pod for pod, row in zip(pods, self._rows, strict=True) if not self._charged(row[0])])
        reserved = [self._reserved(axes, each) for each in self._reservations]
        waiting = [self._waiting(axes, pod) for pod in self._nominated_elsewhere()]
        return Problem(
            axes=axes,
            pods=(*pods, *reserved, *waiting),
            nodes=tuple(self._node(axes, node, used.get(node.name)) for node in self._nodes),
            options=options,
            needs_from=self._snapshot.needs,
            hard_only=axes[len(MEASURED) :],
            namespaces=namespace_labels(self._snapshot.cluster),
        )

    def _charged(self, pod: Pod) -> bool:
        """A pod that is Ready only since its node was measured comes on top of what was measured there."""
        return pod.ready_since is not None and pod.ready_since > self._measured_at.get(pod.node or "", inf)

    def _axes(self) -> tuple[str, ...]:
        """Other requested resources (GPUs, huge pages, ephemeral storage) are hard constraints only: they are not
        measured."""
        stated = {id(requests): requests for requests in map(_counted, self._rows)}
        others = [each.pod for each in self._reservations] + self._nominated
        stated.update({id(pod.replacement_requests): pod.replacement_requests for pod in others})
        requested = {axis for requests in stated.values() for axis, amount in requests.items() if amount > 0}
        return MEASURED + tuple(sorted(requested - {*MEASURED, _POD_COUNT}))

    def _rules(self, pod: Pod) -> Rules:
        """Pods with equal rules share one value."""
        rules = rules_of(pod, self._snapshot.cluster)
        if pod.uid in self._avoided:
            rules = replace(rules, avoided=self._avoided[pod.uid])
        return rules if rules is pod.rules else self._equal_rules.setdefault(rules, rules)

    def _pods(self, axes: tuple[str, ...]) -> list[ProblemPod]:
        needs = list(self._running_needs(axes))
        if len(needs) < len(self._rows):
            running = iter(needs)
            needs = [
                self._pending_needs(axes, row[0], _counted(row)) if row[1] is None else next(running)
                for row in self._rows
            ]
        return _problem_pods(self._rows, needs, self._snapshot)

    def _request(self, axes: tuple[str, ...], requests: Mapping[str, float]) -> Amounts:
        found = self._requests.get(id(requests))
        if found is None:
            found = self._requests[id(requests)] = _amounts(axes, requests)
        return found

    def _running_needs(self, axes: tuple[str, ...]) -> Iterable[_Needs]:
        """Request, usage and peak of every pod with a node, in order. Without fresh measurements the request counts:
        unknown never reads as idle."""
        bound = [row for row in self._rows if row[1] is not None]
        pods = [row[0] for row in bound]
        requests = [self._request(axes, _counted(row)) for row in bound]
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

    def _pending_needs(self, axes: tuple[str, ...], pod: Pod, requests: Mapping[str, float]) -> _Needs:
        """A pod that has not run yet needs what its workload needs."""
        request = self._request(axes, requests)
        if self._snapshot.needs is Needs.REQUESTS:
            return request, request, request
        peak = self._snapshot.usage.workload_peak(workload_key(pod))
        expected = _over(request, (peak.cpu, peak.memory))
        return request, expected, expected

    def _reserved(self, axes: tuple[str, ...], reservation: Reservation) -> ProblemPod:
        """A stand-in for the replacement, with the labels, rules, workload and requests of the pod that it replaces."""
        move, pod = reservation.move, reservation.pod
        stand_in = self._stand_in(axes, pod, move.target, f"reserved for the replacement of {pod.key}")
        name = f"reservation:{move.id}"
        return replace(stand_in, key=f"{pod.namespace}/{name}", uid=name, priority=0)

    def _waiting(self, axes: tuple[str, ...], pod: Pod) -> ProblemPod:
        return self._stand_in(axes, pod, pod.nominated_node, f"pending, with room held on {pod.nominated_node}")

    def _stand_in(self, axes: tuple[str, ...], pod: Pod, node: str | None, fixed: str) -> ProblemPod:
        """Takes room on the node, but does not run there: its needs are those of its workload, as for every pod that
        has not run yet, and they are no part of the node's measured usage."""
        needs = self._pending_needs(axes, pod, pod.replacement_requests)
        (stand_in,) = _problem_pods([(pod, node, fixed, True, pod.rules, EVICTED)], [needs], self._snapshot)
        return replace(stand_in, leaving=False)

    def _nominated_elsewhere(self) -> list[Pod]:
        if not self._nominated:
            return []
        added = {row[0].uid for row in self._rows}
        reserved = {(each.move.replacement, each.move.target) for each in self._reservations}
        return [
            pod for pod in self._nominated if pod.uid not in added and (pod.uid, pod.nominated_node) not in reserved
        ]

    def _node(self, axes: tuple[str, ...], node: Node, used: Amounts | None) -> ProblemNode:
        allocatable = _amounts(axes, node.allocatable)
        csi_node = self._snapshot.cluster.csi_nodes.get(node.name)
        usage = None if self._snapshot.needs is Needs.REQUESTS else self._snapshot.usage.node_usage(node.name)
        room = all(amount > 0 for amount in allocatable[: len(MEASURED)])
        return ProblemNode(
            name=node.name,
            allocatable=allocatable,
            max_pods=int(node.allocatable.get(_POD_COUNT, 0)),
            labels=node.labels,
            taints=node.taints,
            unschedulable=node.unschedulable,
            features=node.features,
            volume_limits=csi_node.volume_limits if csi_node is not None else {},
            attached=unused_attachments(node.name, self._snapshot.cluster),
            ready=node.ready and room,
            measured=usage is None or usage.known,
            background=_background(axes, node, usage, used) if usage is not None and usage.known else (),
        )


def fits_now(
    pod: Pod,
    target: str,
    snapshot: Snapshot,
    reservations: Sequence[Reservation],
    strategy: Strategy = Strategy.EVICT,
) -> bool:
    """Whether the target would take the pod now, counting Terminating pods and the `reservations` of other moves. The
    old pod of a surge stays where it is for now: rules between pods see both.

    Pods of at least its priority that are nominated to the target may come or not, so as for kube-scheduler it has to
    fit with them and without them.
    """
    if target not in snapshot.cluster.nodes:
        return False
    if strategy.surges:
        pod = structs.replace(pod, uid=f"surge:{pod.uid}", name=f"surge:{pod.name}")
    nominated = [
        other
        for other in snapshot.cluster.nominated_to(target)
        if other.priority >= pod.priority and other.uid != pod.uid
    ]
    alone = _fits_beside(pod, target, snapshot, reservations, ())
    return alone and (not nominated or _fits_beside(pod, target, snapshot, reservations, nominated))


def _fits_beside(
    pod: Pod, target: str, snapshot: Snapshot, reservations: Sequence[Reservation], nominated: Sequence[Pod]
) -> bool:
    """Only the pods of the target matter, unless there are rules between pods: these depend on other nodes, too."""
    elsewhere = snapshot.cluster.seen_by_rules
    builder = ProblemBuilder(snapshot, None if elsewhere else (target,))
    for other in {other.uid: other for other in (*snapshot.cluster.pods_on(target), *elsewhere)}.values():
        if other.node is not None and not other.finished and other.uid != pod.uid:
            builder.add(other, fixed="is there already")
    for reservation in reservations:
        if reservation.move.target == target or elsewhere:
            builder.reserve(reservation)
    builder.hold(nominated)
    return builder.fits(pod, target)


def _counted(row: _Row) -> Mapping[str, float]:
    """A pod that may move needs room for its replacement. Where it is, that is never less than what it takes."""
    return row[0].requests if row[2] else row[0].replacement_requests


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


def _problem_pods(rows: Sequence[_Row], needs: Sequence[_Needs], snapshot: Snapshot) -> list[ProblemPod]:
    if not rows:
        return []
    cluster = snapshot.cluster
    pods, nodes, fixed, happy, rules, choices = zip(*rows, strict=True)
    request, usage, peak = zip(*needs, strict=True)
    workloads = [workload_key(pod) for pod in pods]
    startups = [snapshot.startup_seconds.get(workload, USUAL_STARTUP_SECONDS) for workload in workloads]
    return from_columns(
        ProblemPod,
        {
            "key": [pod.key for pod in pods],
            "uid": [pod.uid for pod in pods],
            "usage": usage,
            "request": request,
            "peak": peak,
            "node": nodes,
            "workload": workloads,
            "priority": [pod.priority for pod in pods],
            "happy": happy,
            "fixed": fixed,
            "rules": rules,
            "labels": [pod.labels for pod in pods],
            "leaving": [pod.deleting is not None for pod in pods],
            "unknown": [()] * len(pods),
            "strategy": [choice.strategy or Strategy.EVICT for choice in choices],
            "strategy_reason": [choice.reason for choice in choices],
            "volumes": [attached_volumes(pod, cluster) if pod.pvcs else () for pod in pods],
            "startup_seconds": startups,
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
