"""The definition of a feasible plan and of a blocking pair, as plain loops over pods and nodes.

A plan is *feasible* when

1. it names each pod of the problem once: the pod moves, stays on its node, or is left without one;
2. a running pod loses its node only where the problem allows dumping;
3. each move is allowed: the pod is not fixed, is in scope, moves by its own strategy from the node it is on to another
   one that is ready and that its node rules admit; a running pod moves only to a node with fresh metrics that is not
   cordoned;
4. the moves can be carried out in their order: at its turn, with the pods that lose their node gone and the moves
   before it done, the target has room for the pod by number and by requests;
5. at its turn, each move breaks no rule between pods: kube-scheduler would accept the pod on the target (the volumes
   that the node can attach included), and no other pod's required affinity or topology spread gets worse. A pod that
   surges is also accepted while its old pod is still on its node; after its turn the old pod is gone;
6. no budget is exceeded.

(p, n) *blocks* when p is movable and

a. p may run on n;
b. p strictly prefers n to the node it ends on: by group, then distance, then name (`_Turn.preference`);
c. p fits on n by number, requests and peaks (with headroom) once the movable pods there that rank below it are gone;
d. rules between pods then allow it as well.

Pods have their turns in rank order. A pod sees the pods that rank above it where they end, all others where they were.
Slow; the verifier that certifies plans is tested against it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from matching.plan import PlannedMove, Stay, Unplaced
from matching.problem import Availability, Dumping, Node, Pod, Problem, Scope
from matching.verify.node_rules import closed_to_moves, may_come, may_stay
from matching.verify.reference_pod_rules import PlacedPods
from matching.whole_units import thousandths

TOLERANCE = 1e-9


def violations(
    problem: Problem, moves: Sequence[PlannedMove], stays: Sequence[Stay], unplaced: Sequence[Unplaced]
) -> Iterator[str]:
    """`object: what is wrong`."""
    pods = {pod.key: pod for pod in problem.pods}
    nodes = {node.name: node for node in problem.nodes}
    named = Counter([each.pod for each in moves] + [each.pod for each in stays] + [each.pod for each in unplaced])
    for key in {*pods, *named}:
        if key not in pods or named[key] != 1:  # 1
            yield f"{key}: appears {named[key]} times in the plan" if key in pods else f"{key}: is not in the problem"
    for stay in stays:
        if stay.pod in pods and pods[stay.pod].node != stay.node:
            yield f"{stay.pod}: is not on {stay.node}"
    where: dict[str, str | None] = {pod.key: pod.node for pod in problem.pods}
    for left in unplaced:
        if left.pod in pods:
            pod, where[left.pod] = pods[left.pod], None
            lost = pod.node is not None and (pod.fixed or problem.options.dumping is Dumping.NEVER)
            if lost or left.source != pod.node:  # 2
                yield f"{left.pod}: loses its node" if lost else f"{left.pod}: is not on {left.source}"
    for move in moves:
        if move.target not in nodes:
            yield f"{move.pod}: goes to an unknown node"
        elif move.pod in pods:
            pod, node = pods[move.pod], nodes[move.target]
            if not _allowed(problem, pod, move, node):  # 3
                yield f"{move.pod}: may not go to {move.target}"
            placed = PlacedPods(problem, where)
            beside_old = not pod.strategy.surges or placed.node_of(pod) in (None, node) or placed.accepts(pod, node)
            if not placed.allows(pod, node) or not beside_old:  # 5
                yield f"{move.pod}: breaks a rule between pods"
            where[move.pod] = move.target
            there = [other for other in problem.pods if where[other.key] == move.target]
            yield from _no_room(problem, pod, node, there)  # 4
    yield from _over_budget(problem, pods, moves, unplaced)  # 6


def _allowed(problem: Problem, pod: Pod, move: PlannedMove, node: Node) -> bool:
    if pod.fixed or move.source != pod.node or move.strategy is not pod.strategy or not may_come(pod.rules, node):
        return False
    if pod.node is None:
        return True
    scope = problem.options.scope
    in_scope = scope in (Scope.CLUSTER, Scope.AFFECTED) or (scope is Scope.UNHAPPY and not pod.happy)
    known = pod.node in {each.name for each in problem.nodes}
    return in_scope and known and node.name != pod.node and not closed_to_moves(node)


def _no_room(problem: Problem, pod: Pod, node: Node, there: Sequence[Pod]) -> Iterator[str]:
    """`there`: the pods on the node with the one that has just arrived."""
    if len(there) > node.max_pods:
        yield f"{pod.key}: {node.name} has too many pods at its turn"
    for axis in range(len(problem.axes)):
        requested = sum(thousandths(each.request)[axis] for each in there)
        if thousandths(pod.request)[axis] > 0 and requested > thousandths(node.allocatable)[axis]:
            yield f"{pod.key}: {problem.axes[axis]} requests exceed what {node.name} has at its turn"


def _over_budget(
    problem: Problem, pods: Mapping[str, Pod], moves: Sequence[PlannedMove], unplaced: Sequence[Unplaced]
) -> Iterator[str]:
    """Running pods that move or lose their node are counted, by each node that they leave or enter as well."""
    options, counts = problem.options, Counter[tuple[str, int | None]]()
    disturbed = [(move.pod, move.source, [move.source, move.target]) for move in moves]
    disturbed += [(left.pod, left.source, [left.source]) for left in unplaced]
    for key, source, nodes in disturbed:
        if source is not None:
            namespace, workload = key.split("/")[0], pods[key].workload if key in pods else ""
            counts["plan", options.max_moves] += 1
            counts[f"namespace {namespace}", options.max_moves_per_namespace] += 1
            replicas = f"workload {namespace}/{workload}" if workload else f"pod {key}"
            counts[replicas, options.max_moves_per_workload] += 1
            for node in nodes:
                counts[f"node {node}", options.max_moves_per_node] += 1
    for (what, limit), count in counts.items():
        if limit is not None and count > limit:
            yield f"{what}: {count} moves of running pods, at most {limit} allowed"


def blocking_pairs(problem: Problem, ends: Mapping[str, str | None]) -> set[tuple[str, str]]:
    """`ends` has the node that each pod ends on, or None."""
    ranked = sorted((pod for pod in problem.pods if _movable(problem, pod)), key=_rank)
    turns = [_Turn(problem, ends, ranked[:at], pod, ranked[at + 1 :]) for at, pod in enumerate(ranked)]
    return {(turn.pod.key, node.name) for turn in turns for node in problem.nodes if turn.blocks(node)}


def _movable(problem: Problem, pod: Pod) -> bool:
    if pod.fixed or pod.node is None:
        return not pod.fixed
    scope = problem.options.scope
    in_scope = scope is Scope.CLUSTER or (scope is not Scope.PENDING and not pod.happy)
    return in_scope and pod.node in {node.name for node in problem.nodes}


def _rank(pod: Pod) -> tuple[bool, int, float, str]:
    """Running pods by CPU use, then pending pods by priority and CPU use."""
    pending = pod.node is None
    return pending, -pod.priority if pending else 0, -pod.rank_cpu, pod.key


@dataclass(frozen=True, slots=True)
class _Turn:
    """One pod, and the movable pods that rank above and below it. Usage and peaks are shares of the largest node."""

    problem: Problem
    ends: Mapping[str, str | None]
    above: Sequence[Pod]
    pod: Pod
    below: Sequence[Pod]

    def blocks(self, node: Node) -> bool:
        placed = PlacedPods(self.problem, self.ends)
        end = placed.node_of(self.pod)
        if node is end:
            return False
        must_leave = end is None or (end.name == self.pod.node and not may_stay(self.pod.rules, end))
        for pod in self.below:
            if placed.node_of(pod) is node:
                placed = placed.moved(pod, None)
        return (
            self._may_run_on(node)  # a
            and (must_leave or end is None or self.preference(node) < self.preference(end))  # b
            and self._fits(node)  # c
            and placed.allows(self.pod, node)  # d
        )

    def preference(self, node: Node) -> tuple[int, float, str]:
        """The lowest is the best. A happy pod is nearer to its current node by the inertia. An unhappy pod prefers, in
        this order: its node if the pods above it cured it, nodes that are clearly less loaded, its node, the rest. For
        a pod that is spread, the other nodes are farther by its replicas."""
        options, current = self.problem.options, node.name == self.pod.node
        room = self._room(node)
        gaps = [max(room[axis], 0.0) - self._share(self.pod.usual, axis) for axis in self._measured_axes()]
        soft = options.soft_weight and PlacedPods(self.problem, self._now()).soft_share(self.pod, node)
        distance = round(math.sqrt(sum(gap**2 for gap in gaps)) + options.soft_weight * soft, 9)
        if not current and self._is_spread():
            distance = round(distance + self._replicas(node) + 7 * soft, 9)
        own = PlacedPods(self.problem, self._now()).node_of(self.pod)
        if self.pod.happy or own is None:
            return 0, round(distance - options.inertia, 9) if current else distance, node.name
        load, limit = self._load(own, self.above), 1 - options.headroom
        if current:
            cured = self._load(own, ()) > limit + TOLERANCE and load < limit - TOLERANCE
            return 0 if cured else 2, distance, node.name
        relieves = self._load(node, self.above, self.pod) <= load - options.relief + TOLERANCE
        return 1 if relieves else 3, distance, node.name

    def _is_spread(self) -> bool:
        """A pending or unhappy pod of a workload with several replicas, without topology spread of its own."""
        rules, replicas = self.pod.rules, [pod for pod in self.problem.pods if self._is_replica(pod)]
        needs_node = self.pod.node is None or not self.pod.happy
        own_spread = rules.spread or rules.preferred.spread
        return bool(self.problem.options.soft_weight and needs_node and not own_spread and len(replicas) > 1)

    def _is_replica(self, pod: Pod) -> bool:
        same = (pod.namespace, pod.workload) == (self.pod.namespace, self.pod.workload)
        return same and bool(pod.workload) and not pod.leaving

    def _replicas(self, node: Node) -> int:
        """Four for each other replica on the node, two for each in its zone. In the scope affected a pod that is not
        movable may have made room, so it counts where it ends."""
        where = self._now() | {pod.key: self.ends.get(pod.key) for pod in self.above}
        if self.problem.options.scope is Scope.AFFECTED:
            fixed = [pod for pod in self.problem.pods if not _movable(self.problem, pod)]
            where |= {pod.key: self.ends.get(pod.key, pod.node) for pod in fixed}
        others = [pod for pod in self.problem.pods if self._is_replica(pod) and pod is not self.pod]
        there = [each for pod in others if (each := PlacedPods(self.problem, where).node_of(pod)) is not None]
        zone = node.labels.get("topology.kubernetes.io/zone")
        in_zone = [each for each in there if zone and each.labels.get("topology.kubernetes.io/zone") == zone]
        return 4 * sum(each is node for each in there) + 2 * len(in_zone)

    def _may_run_on(self, node: Node) -> bool:
        if node.name == self.pod.node:
            return may_stay(self.pod.rules, node)
        return may_come(self.pod.rules, node) and (self.pod.node is None or not closed_to_moves(node))

    def _fits(self, node: Node) -> bool:
        """With inertia, a happy pod needs no headroom on its current node."""
        options = self.problem.options
        there = [*self._fixed_on(node), *(pod for pod in self.above if self.ends.get(pod.key) == node.name)]
        at_ease = node.name == self.pod.node and self.pod.happy and options.inertia > 0
        limit = 1 if at_ease else 1 - options.headroom
        if len(there) >= node.max_pods:
            return False
        for axis in range(len(self.problem.axes)):
            requested = sum(thousandths(pod.request)[axis] for pod in (*there, self.pod))
            if thousandths(self.pod.request)[axis] > 0 and requested > thousandths(node.allocatable)[axis]:
                return False
            allocatable = self._share(node.allocatable, axis)
            peak = self._share(self.pod.peak, axis)
            peaks = self._share(node.background, axis) + peak + sum(self._share(pod.peak, axis) for pod in there)
            if axis in self._measured_axes() and peak > 0 and peaks >= limit * allocatable - TOLERANCE:
                return False
        return True

    def _room(self, node: Node) -> list[float]:
        """Allocatable less the usage of what cannot move, and if the options say so, of the pods above."""
        there = list(self._fixed_on(node))
        if self.problem.options.availability is Availability.AFTER:
            there += [pod for pod in self.above if self.ends.get(pod.key) == node.name]
        return [
            self._share(node.allocatable, axis)
            - self._share(node.background, axis)
            - sum(self._share(pod.usual, axis) for pod in there)
            for axis in range(len(self.problem.axes))
        ]

    def _load(self, node: Node, moved: Sequence[Pod], *arriving: Pod) -> float:
        """Peaks as a share of the node, worst axis. Where moves cost nothing, all pods are seen where they were."""
        where = dict(self._now())
        if self.problem.options.inertia > 0:
            where.update({pod.key: self.ends.get(pod.key) for pod in moved if pod.node is not None})
        pods = [pod for pod in (*self.above, self.pod, *self.below) if where[pod.key] == node.name]
        pods += [*self._fixed_on(node), *arriving]
        shares = []
        for axis in self._measured_axes():
            load = self._share(node.background, axis) + sum(self._share(pod.peak, axis) for pod in pods)
            allocatable = self._share(node.allocatable, axis)
            shares.append(load / allocatable if allocatable else 1 + load if load else 0.0)
        return max(shares)

    def _fixed_on(self, node: Node) -> list[Pod]:
        """Pods that are not movable. In the scope affected they may have made room all the same."""
        where = dict(self._now())
        if self.problem.options.scope is Scope.AFFECTED:
            where |= self.ends
        return [pod for pod in self.problem.pods if where[pod.key] == node.name and not _movable(self.problem, pod)]

    def _now(self) -> dict[str, str | None]:
        return {pod.key: pod.node for pod in self.problem.pods}

    def _measured_axes(self) -> list[int]:
        return [at for at, axis in enumerate(self.problem.axes) if axis not in self.problem.hard_only]

    def _share(self, amounts: Sequence[float], axis: int) -> float:
        largest = max(node.allocatable[axis] for node in self.problem.nodes) or 1.0
        return amounts[axis] / largest if amounts else 0.0
