"""Needs and room (decision 6): the three quantities of a pod, what a node has, and who already holds some of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from matching.feasibility import would_take
from matching.problem import Amounts, Options, Problem, Requirement, Rules, Scope, Strategy, Term, from_columns
from matching.problem import Node as Place
from matching.problem import Pod as Guest
from reactor.cluster.pod_constraints import namespace_labels, rules_of
from reactor.cluster.records import Node, Pod
from reactor.signals.readings import Usage
from reactor.signals.workloads import workload_key
from reactor.state.moves import Move
from reactor.state.snapshot import Needs, Snapshot

MEASURED = ("cpu", "memory")
COUNTED_APART = "pods"
"""A node's limit of pods is no axis: every pod takes one."""
DEFAULT_MAX_PODS = 110.0

_Row = tuple[Pod, str | None, str, bool, Rules]
"""Pod, its node, why it is fixed, whether it is happy, its rules."""

_Needs = tuple[Amounts, Amounts, Amounts]
"""Request, usage and peak."""


class ProblemBuilder:
    """Collects guests; nodes are added at the end, when it is known which axes matter."""

    def __init__(self, snapshot: Snapshot, only: Collection[str] | None = None) -> None:
        """`only` these nodes, where the others do not matter."""
        self._snapshot = snapshot
        nodes = snapshot.cluster.nodes
        self._nodes: list[Node] = [nodes[name] for name in (nodes if only is None else only) if name in nodes]
        self._guests: list[_Row] = []
        self._held: list[Move] = []
        self._equal_rules: dict[Rules, Rules] = {}
        self._requests: dict[int, Amounts] = {}
        """By the identity of the mapping, which the pods of a template share."""

    def add(self, pod: Pod, *, fixed: str = "", happy: bool = True, only_on: str | None = None) -> None:
        self._guests.append((pod, pod.node, fixed, happy, self._rules(pod, only_on)))

    def add_all(self, pods: Sequence[Pod], fixed: Sequence[str], happy: Sequence[bool]) -> None:
        """Very many at once, each with why it is fixed and whether it is happy."""
        rules = [self._rules(pod, None) if pod.pvcs else pod.rules for pod in pods]
        self._guests += zip(pods, [pod.node for pod in pods], fixed, happy, rules, strict=True)

    def hold(self, run: Move) -> None:
        """Room on the target for a replacement that is not there yet."""
        self._held.append(run)

    def takes(self, pod: Pod, target: str) -> bool:
        """Whether the target would take the pod, as if it had no node yet."""
        self._guests.append((pod, None, "", True, self._rules(pod, None)))
        return would_take(self.problem(Options(scope=Scope.PENDING)), pod.uid, target)

    def problem(self, options: Options) -> Problem:
        axes = self._axes()
        self._requests.clear()
        guests = self._guests_of(axes)
        used = _used_by_node(guests)
        held = [self._reservation(axes, run) for run in self._held]
        return Problem(
            axes=axes,
            pods=(*guests, *held),
            nodes=tuple(self._place(axes, node, used.get(node.name)) for node in self._nodes),
            options=options,
            needs_from=self._snapshot.needs,
            hard_only=axes[len(MEASURED) :],
            namespaces=namespace_labels(self._snapshot.cluster),
        )

    def _axes(self) -> tuple[str, ...]:
        """Whatever else somebody asks for (GPUs, huge pages, ephemeral storage) can only reject: nobody measures it."""
        stated = {id(pod.requests): pod.requests for pod in [row[0] for row in self._guests]}
        asked = {axis for requests in stated.values() for axis, amount in requests.items() if amount > 0}
        return MEASURED + tuple(sorted(asked - {*MEASURED, COUNTED_APART}))

    def _rules(self, pod: Pod, only_on: str | None) -> Rules:
        """Of pods whose rules come out equal only one value is kept."""
        rules = rules_of(pod, self._snapshot.cluster)
        if only_on is not None:
            rules = pinned(rules, only_on)
        return rules if rules is pod.rules else self._equal_rules.setdefault(rules, rules)

    def _guests_of(self, axes: tuple[str, ...]) -> list[Guest]:
        needs = list(self._running_needs(axes))
        if len(needs) < len(self._guests):
            running = iter(needs)
            needs = [self._new_needs(axes, row[0]) if row[1] is None else next(running) for row in self._guests]
        return _guests(self._guests, needs)

    def _request(self, axes: tuple[str, ...], pod: Pod) -> Amounts:
        key = id(pod.requests)
        found = self._requests.get(key)
        if found is None:
            found = self._requests[key] = _amounts(axes, pod.requests)
        return found

    def _running_needs(self, axes: tuple[str, ...]) -> Iterable[_Needs]:
        """Request, usage and peak of every guest with a node, in order. Where nothing fresh is known the request
        stands in: unknown never reads as idle."""
        pods = [row[0] for row in self._guests if row[1] is not None]
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

    def _new_needs(self, axes: tuple[str, ...], pod: Pod) -> _Needs:
        """A pod that has not run yet needs what its workload needs."""
        request = self._request(axes, pod)
        if self._snapshot.needs is Needs.REQUESTS:
            return request, request, request
        peak = self._snapshot.usage.workload_peak(workload_key(pod))
        expected = _over(request, (peak.cpu, peak.memory))
        return request, expected, expected

    def _reservation(self, axes: tuple[str, ...], run: Move) -> Guest:
        """It will look like the pod that it replaces to everybody else's rules, and have the same. Needs what its
        workload needs, as any pod that has not run yet: the pod it replaces may be gone."""
        fixed = f"held for the replacement of {run.pod.key}"
        (guest,) = _guests([(run.pod, None, fixed, True, run.pod.rules)], [self._new_needs(axes, run.pod)])
        name = f"reservation:{run.id}"
        key = f"{run.pod.namespace}/{name}"
        return replace(guest, key=key, uid=name, node=run.move.target, workload=name, priority=0, leaving=False)

    def _place(self, axes: tuple[str, ...], node: Node, used: Amounts | None) -> Place:
        allocatable = _amounts(axes, node.allocatable)
        usage = None if self._snapshot.needs is Needs.REQUESTS else self._snapshot.usage.node_usage(node.name)
        room = all(amount > 0 for amount in allocatable[: len(MEASURED)])
        return Place(
            name=node.name,
            allocatable=allocatable,
            max_pods=int(node.allocatable.get("pods", DEFAULT_MAX_PODS)),
            labels=node.labels,
            taints=node.taints,
            unschedulable=node.unschedulable,
            ready=node.ready and room,
            measured=usage is None or usage.known,
            background=_background(axes, node, usage, used) if usage is not None and usage.known else (),
        )


def _background(axes: tuple[str, ...], node: Node, usage: Usage, used: Amounts | None) -> Amounts:
    """What the node uses beyond its pods and beyond what it keeps back for itself anyway."""
    measured = {"cpu": usage.cpu.fresh, "memory": usage.memory.fresh}
    rest = []
    for at, axis in enumerate(axes):
        total = measured.get(axis)
        kept_back = node.capacity.get(axis, 0.0) - node.allocatable.get(axis, 0.0)
        pods = used[at] if used is not None else 0.0
        rest.append(0.0 if total is None else max(0.0, total - pods - max(0.0, kept_back)))
    return tuple(rest)


def _guests(rows: Sequence[_Row], needs: Sequence[_Needs]) -> list[Guest]:
    if not rows:
        return []
    pods, nodes, fixed, happy, rules = zip(*rows, strict=True)
    request, usage, peak = zip(*needs, strict=True)
    return from_columns(
        Guest,
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


def pinned(rules: Rules, node: str) -> Rules:
    """The same rules, and only this node. An empty term matches no node, so it must not become this one."""
    here = Requirement("metadata.name", "In", (node,))
    if rules.node_affinity is None:
        return replace(rules, node_affinity=(Term(fields=(here,)),))
    terms = [term for term in rules.node_affinity if term != Term()]
    return replace(rules, node_affinity=tuple(replace(term, fields=(*term.fields, here)) for term in terms))


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


def _used_by_node(guests: list[Guest]) -> dict[str, Amounts]:
    numbers: dict[str, int] = {}
    there = [guest for guest in guests if guest.node is not None]
    at = [numbers.setdefault(guest.node or "", len(numbers)) for guest in there]
    if not there:
        return {}
    axes = len(there[0].usage)
    usage = np.fromiter(chain.from_iterable(guest.usage for guest in there), np.float64, len(there) * axes)
    sums = [np.bincount(at, weights=row) for row in usage.reshape(-1, axes).T]
    return dict(zip(numbers, zip(*(row.tolist() for row in sums), strict=True), strict=True))
