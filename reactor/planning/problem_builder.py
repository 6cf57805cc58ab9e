"""Needs and room: builds a matching problem from the pods, nodes and reservations of a snapshot."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from matching.feasibility import would_take
from matching.problem import USUAL_STARTUP_SECONDS, Amounts, Options, Problem, Rules, Scope, Strategy
from matching.problem import Pod as ProblemPod
from reactor.cluster.pod_constraints import namespace_labels, rules_of
from reactor.cluster.records import Node, Pod
from reactor.decision.causes import SAMPLED
from reactor.decision.strategies import Choice
from reactor.forecasts.pod_forecasts import PodPeaks
from reactor.planning.history_needs import described, inherited, with_history
from reactor.planning.problem_nodes import POD_COUNT, MeasuredPods, problem_nodes
from reactor.planning.problem_pods import EVICTED, KeptPods, PodNeeds, RequestAmounts, Row, counted, problem_pods
from reactor.settings.model import Energy
from reactor.signals.workloads import workload_key
from reactor.state.moves import Reservation
from reactor.state.snapshot import MEASURED, Needs, Snapshot


class ProblemBuilder:
    """Collects pods and reservations. Nodes are added at the end, when the axes are known."""

    def __init__(
        self,
        snapshot: Snapshot,
        only: Collection[str] | None = None,
        avoided: Mapping[str, tuple[str, ...]] | None = None,
        kept: KeptPods | None = None,
        *,
        predicted: bool = False,
        energy: Energy | None = None,
        faulty: Collection[str] = (),
    ) -> None:
        """`only`: the names of the nodes that matter; None means all. `avoided`: nodes that did not help, by the UID of
        a pod that is not to be moved there. `kept`: the pods of the last problem. `predicted`: pods need what they are
        expected to need, by the outlook of their nodes. `energy`: plans say what their nodes draw.
        `faulty`: the names of nodes whose pods fail by a fault of the node, not by its load."""
        self._energy, self._faulty = energy, faulty
        self._growth = {name: each.growth for name, each in snapshot.outlooks.items()} if predicted else {}
        self._avoided = avoided or {}
        self._kept = KeptPods() if kept is None else kept
        self._snapshot = snapshot
        nodes = snapshot.cluster.nodes
        self._nodes: list[Node] = [nodes[name] for name in (nodes if only is None else only) if name in nodes]
        self._rows: list[Row] = []
        self._reservations: list[Reservation] = []
        self._nominated: list[Pod] = []
        self._equal_rules: dict[Rules, Rules] = {}

    def add(self, pod: Pod, *, fixed: str = "", happy: bool = True) -> None:
        self._rows.append((pod, pod.node, fixed, happy, self._rules(pod), EVICTED, self._startup(pod)))

    def add_all(
        self, pods: Sequence[Pod], fixed: Sequence[str], happy: Sequence[bool], choices: Sequence[Choice]
    ) -> None:
        """`add` for very many pods."""
        avoided = self._avoided
        rules = [self._rules(pod) if pod.pvcs or pod.uid in avoided else pod.rules for pod in pods]
        nodes, startups = [pod.node for pod in pods], self._startups(pods)
        self._rows += zip(pods, nodes, fixed, happy, rules, choices, startups, strict=True)

    def reserve(self, reservation: Reservation) -> None:
        self._reservations.append(reservation)

    def hold(self, nominated: Iterable[Pod]) -> None:
        """Pending pods count on the node that they are nominated to, unless they were added or have a reservation."""
        self._nominated += nominated

    def fits(self, pod: Pod, target: str) -> bool:
        """Whether the target would take the pod, as if it were pending."""
        self._rows.append((pod, None, "", True, self._rules(pod), EVICTED, self._startup(pod)))
        return would_take(self.problem(Options(scope=Scope.PENDING)), pod.uid, target)

    def problem(self, options: Options) -> Problem:
        requests = RequestAmounts(self._axes())
        bound = [row for row in self._rows if row[1] is not None]
        forecasts = self._snapshot.forecasts.peaks([row[0] for row in bound], self._snapshot.at)
        needs, measured = self._measured_needs(bound, requests, forecasts)
        pods = self._kept.of(bound, needs, requests, self._snapshot.cluster)
        reserved = [self._reserved(requests, each) for each in self._reservations]
        waiting = [self._waiting(requests, pod) for pod in self._nominated_elsewhere()]
        return Problem(
            axes=requests.axes,
            pods=(*self._with_pending(pods, requests), *reserved, *waiting),
            nodes=tuple(
                problem_nodes(self._nodes, requests.axes, self._snapshot, measured, self._energy, self._faulty)
            ),
            options=options,
            needs_from=self._snapshot.needs,
            estimates=described(self._snapshot, needs, forecasts),
            hard_only=requests.axes[len(MEASURED) :],
            namespaces=namespace_labels(self._snapshot.cluster),
        )

    def _with_pending(self, running: list[ProblemPod], requests: RequestAmounts) -> Iterable[ProblemPod]:
        """In the order in which they were added."""
        if len(running) == len(self._rows):
            return running
        pending = [row for row in self._rows if row[1] is None]
        needs = [self._pending_needs(requests, row[0], counted(row)) for row in pending]
        made, bound = iter(problem_pods(pending, needs, self._snapshot.cluster)), iter(running)
        return [next(made) if row[1] is None else next(bound) for row in self._rows]

    def _axes(self) -> tuple[str, ...]:
        """Other requested resources (GPUs, huge pages, ephemeral storage) are hard constraints only: they are not
        measured."""
        pods = [row[0] for row in self._rows]
        stated = {id(pod.requests): pod.requests for pod in pods if pod.infeasible_resize is None}
        resized = (row for row in self._rows if row[0].infeasible_resize is not None)
        stated.update({id(requests): requests for requests in map(counted, resized)})
        others = [each.pod for each in self._reservations] + self._nominated
        stated.update({id(pod.replacement_requests): pod.replacement_requests for pod in others})
        requested = {axis for requests in stated.values() for axis, amount in requests.items() if amount > 0}
        return MEASURED + tuple(sorted(requested - {*MEASURED, POD_COUNT}))

    def _rules(self, pod: Pod) -> Rules:
        """Pods with equal rules share one value."""
        rules = rules_of(pod, self._snapshot.cluster)
        if pod.uid in self._avoided:
            rules = replace(rules, avoided=self._avoided[pod.uid])
        return rules if rules is pod.rules else self._equal_rules.setdefault(rules, rules)

    def _startup(self, pod: Pod) -> float:
        return self._snapshot.startup_seconds.get(workload_key(pod), USUAL_STARTUP_SECONDS)

    def _startups(self, pods: Sequence[Pod]) -> Iterable[float]:
        """`_startup` for very many pods."""
        known = self._snapshot.startup_seconds
        if not known:
            return [USUAL_STARTUP_SECONDS] * len(pods)
        return map(known.get, self._kept.workloads_of(pods), repeat(USUAL_STARTUP_SECONDS))

    def _measured_needs(
        self, rows: Sequence[Row], requests: RequestAmounts, forecasts: PodPeaks
    ) -> tuple[NDArray[np.float64], MeasuredPods]:
        """Usage, peak and mean of the measured axes and idle CPU (see `with_history`), and what nodes are measured
        with. Without fresh measurements the request counts: unknown never reads as idle. A pod that is not Ready, or
        was not all the time that its last sample is an average of, counts with its workload's peak: it has only just
        come, or was restarted."""
        axes = len(MEASURED)
        if self._snapshot.needs is Needs.REQUESTS or not rows:
            stated = [requests.of(counted(row))[:axes] * 2 for row in rows]
            needs = np.array(stated, dtype=np.float64).reshape(len(rows), 2 * axes)
            unknown = np.full((len(rows), axes + 1), np.nan)
            return np.hstack((needs, unknown)), MeasuredPods(rows, needs[:, :axes], np.ones(len(rows), dtype=bool))
        usage, peak, measured_since = self._snapshot.usage.needs([row[0].uid for row in rows])
        since = np.fromiter((row[0].ready_since or 0.0 if row[0].ready else math.inf for row in rows), float, len(rows))
        new = since > np.maximum(measured_since, self._snapshot.at - SAMPLED)
        for at in np.flatnonzero(new).tolist():
            of_workload = self._snapshot.usage.workload_peak(workload_key(rows[at][0]))
            peak[at] = np.fmax(peak[at], np.array([of_workload.cpu, of_workload.memory], dtype=np.float64))
        known: NDArray[np.bool_] = np.all(~np.isnan(usage), axis=1)
        request = np.zeros_like(usage)
        for at in np.flatnonzero(~known | np.isnan(peak).any(axis=1)).tolist():
            request[at] = requests.of(counted(rows[at]))[:axes]
        expected = np.where(np.isnan(peak), request, peak)
        used = np.where((known & ~new)[:, None], usage, np.fmax(np.maximum(request, expected), usage))
        if self._growth:
            growth = np.array([[self._growth.get(row[1] or "", 1.0), 1.0] for row in rows])
            used, expected = used * growth, expected * growth
        needs = with_history(rows, used, np.maximum(used, expected), self._snapshot.history, forecasts)
        return needs, MeasuredPods(rows, np.where(known[:, None], usage, used), known)

    def _pending_needs(self, requests: RequestAmounts, pod: Pod, stated: Mapping[str, float]) -> PodNeeds:
        """A pod that has not run yet needs what its workload needs."""
        request = requests.of(stated)
        if self._snapshot.needs is Needs.REQUESTS:
            return request, request, request, (), None
        peak = self._snapshot.usage.workload_peak(workload_key(pod))
        expected = _over(request, (peak.cpu, peak.memory))
        return request, *inherited(pod, expected, self._snapshot.history)

    def _reserved(self, requests: RequestAmounts, reservation: Reservation) -> ProblemPod:
        """A stand-in for the replacement, with the labels, rules, workload and requests of the pod that it replaces."""
        move, pod = reservation.move, reservation.pod
        stand_in = self._stand_in(requests, pod, move.target, f"reserved for the replacement of {pod.key}")
        name = f"reservation:{move.id}"
        return replace(stand_in, key=f"{pod.namespace}/{name}", uid=name, priority=0)

    def _waiting(self, requests: RequestAmounts, pod: Pod) -> ProblemPod:
        return self._stand_in(requests, pod, pod.nominated_node, f"pending, with room held on {pod.nominated_node}")

    def _stand_in(self, requests: RequestAmounts, pod: Pod, node: str | None, fixed: str) -> ProblemPod:
        """Takes room on the node, but does not run there: its needs are those of its workload, as for every pod that
        has not run yet, and they are no part of the node's measured usage."""
        needs = self._pending_needs(requests, pod, pod.replacement_requests)
        row = (pod, node, fixed, True, pod.rules, EVICTED, self._startup(pod))
        (stand_in,) = problem_pods([row], [needs], self._snapshot.cluster)
        return replace(stand_in, leaving=False)

    def _nominated_elsewhere(self) -> list[Pod]:
        if not self._nominated:
            return []
        added = {row[0].uid for row in self._rows}
        reserved = {(each.move.replacement, each.move.target) for each in self._reservations}
        return [
            pod for pod in self._nominated if pod.uid not in added and (pod.uid, pod.nominated_node) not in reserved
        ]


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


def _over(base: Amounts, measured: tuple[float | None, float | None]) -> Amounts:
    """The measured axes from the measurement where there is one, the others from `base`."""
    return (
        *(b if m is None else m for b, m in zip(base[: len(MEASURED)], measured, strict=True)),
        *base[len(MEASURED) :],
    )
