"""Violations: everything that makes a plan impossible or forbidden, in words that name the objects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from matching.plan import PlannedMove, Stay, Unplaced
from matching.problem import Dumping, Node, Pod, Problem, Rules, Scope
from matching.verify.node_rules import NodeGroups, closed_to_moves, may_come
from matching.verify.pod_rules import pod_rule_violations
from matching.verify.volume_limits import volume_limit_violations
from matching.whole_units import thousandths


def violations(
    problem: Problem, moves: Sequence[PlannedMove], stays: Sequence[Stay], unplaced: Sequence[Unplaced]
) -> Iterator[str]:
    pods = {pod.key: pod for pod in problem.pods}
    nodes = {node.name: node for node in problem.nodes}
    yield from _wrong_entries(pods, moves, stays, unplaced)
    yield from _lost_nodes(problem, pods, unplaced)
    known = [move for move in moves if move.pod in pods and move.target in nodes]
    yield from (
        f"{move.pod}: target {move.target} is not a node of the problem" for move in moves if move.target not in nodes
    )
    allowed = _AllowedNodes(nodes)
    for move in known:
        yield from _forbidden(problem, pods[move.pod], move, allowed)
    gone = [left.pod for left in unplaced if left.pod in pods]
    yield from _overfull(problem, pods, nodes, known, gone)
    yield from pod_rule_violations(problem, known, gone)
    yield from volume_limit_violations(problem, known, gone)
    yield from budget_violations(problem, moves, unplaced)


def _wrong_entries(
    pods: dict[str, Pod], moves: Sequence[PlannedMove], stays: Sequence[Stay], unplaced: Sequence[Unplaced]
) -> Iterator[str]:
    named = Counter(entry.pod for part in (moves, stays, unplaced) for entry in part)
    yield from (f"{key}: named {count} times in the plan" for key, count in named.items() if count > 1)
    yield from (f"{key}: not a pod of the problem" for key in named if key not in pods)
    yield from (f"{key}: missing from the plan" for key in pods if key not in named)
    for stay in stays:
        if stay.pod in pods and pods[stay.pod].node != stay.node:
            yield f"{stay.pod}: cannot stay on {stay.node}, it is on {pods[stay.pod].node}"


def _lost_nodes(problem: Problem, pods: dict[str, Pod], unplaced: Sequence[Unplaced]) -> Iterator[str]:
    """A running pod must not end without a node, unless the problem allows it and the pod may be moved."""
    for entry in unplaced:
        pod = pods.get(entry.pod)
        if pod is None:
            continue
        if entry.source != pod.node:
            yield f"{pod.key}: dumped from {entry.source}, but is on {pod.node}"
        if pod.node is not None and (pod.fixed or problem.options.dumping is Dumping.NEVER):
            yield f"{pod.key}: runs on {pod.node} and would lose its node"


class _AllowedNodes:
    """Where a pod's own rules let it run, evaluated once for equal pods and nodes."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        self._index = {name: at for at, name in enumerate(nodes)}
        self._groups = NodeGroups(tuple(nodes.values()))
        self._known: dict[int, list[bool]] = {}

    def may_come(self, rules: Rules, node: str) -> bool:
        known = self._known.get(id(rules))
        if known is None:
            known = self._known[id(rules)] = self._groups.evaluate(rules, may_come).tolist()
        return known[self._index[node]]


def _forbidden(problem: Problem, pod: Pod, move: PlannedMove, allowed: _AllowedNodes) -> Iterator[str]:
    node = allowed.nodes[move.target]
    if pod.fixed:
        yield f"{pod.key}: may not be moved ({pod.fixed})"
    if move.source != pod.node:
        yield f"{pod.key}: moves from {move.source}, but is on {pod.node}"
    if move.strategy is not pod.strategy:
        yield f"{pod.key}: moves by {move.strategy}, but its strategy is {pod.strategy}"
    if move.target == pod.node:
        yield f"{pod.key}: moves to the node it is on"
    if pod.node is not None and pod.node not in allowed.nodes:
        yield f"{pod.key}: is on {pod.node}, which is not in the problem, and may not be moved"
    scope = problem.options.scope
    if pod.node is not None and (scope is Scope.PENDING or (scope is Scope.UNHAPPY and pod.happy)):
        yield f"{pod.key}: is not in the scope {scope.value}"
    if not allowed.may_come(pod.rules, node.name):
        yield f"{pod.key}: may not run on {node.name}"
    if pod.node is not None and not node.measured:
        yield f"{pod.key}: {node.name} has no fresh metrics, no running pod may go there"
    elif pod.node is not None and closed_to_moves(node):
        yield f"{pod.key}: {node.name} is cordoned, no running pod may go there"


def _overfull(
    problem: Problem, pods: dict[str, Pod], nodes: dict[str, Node], moves: Sequence[PlannedMove], gone: Sequence[str]
) -> Iterator[str]:
    """What arrives must fit. A node that was overfull before and receives nothing is not the plan's fault."""
    arrivals: defaultdict[str, list[Pod]] = defaultdict(list)
    for move in moves:
        arrivals[move.target].append(pods[move.pod])
    ends = {key: pod.node for key, pod in pods.items()} | dict.fromkeys(gone)
    ends.update({move.pod: move.target for move in moves})
    there: defaultdict[str, list[Pod]] = defaultdict(list)
    for key, end in ends.items():
        if end in arrivals:
            there[end].append(pods[key])
    for name, arrived in sorted(arrivals.items()):
        node = nodes[name]
        if len(there[name]) > node.max_pods:
            yield f"{name}: {len(there[name])} pods, at most {node.max_pods} are allowed"
        requests = [thousandths(pod.request) for pod in there[name]]
        for axis, title in enumerate(problem.axes):
            total, allowed = sum(request[axis] for request in requests), thousandths(node.allocatable)[axis]
            if total > allowed and any(thousandths(pod.request)[axis] > 0 for pod in arrived):
                sizes = f"add up to {total / 1000:.16g}, allocatable is {allowed / 1000:.16g}"
                yield f"{name}: requests of {title} {sizes}"


def budget_violations(
    problem: Problem, moves: Sequence[PlannedMove], unplaced: Sequence[Unplaced] = ()
) -> Iterator[str]:
    """Placing a pending pod costs nothing. A node pays for what leaves it and for what enters it. Dumping a pod costs
    as much as moving it."""
    options = problem.options
    entries: list[PlannedMove | Unplaced] = [*moves, *unplaced]
    disturbed = [each for each in entries if each.source is not None]
    named = {each.pod for each in disturbed}
    workloads = {pod.key: pod.workload for pod in problem.pods if pod.key in named}
    namespaces = [move.pod.split("/", 1)[0] for move in disturbed]
    replicas_of = [
        f"workload {namespace}/{workload}" if (workload := workloads.get(move.pod)) else f"pod {move.pod}"
        for move, namespace in zip(disturbed, namespaces, strict=True)
    ]
    yield from _over(options.max_moves, ["plan"] * len(disturbed))
    yield from _over(options.max_moves_per_workload, replicas_of)
    yield from _over(options.max_moves_per_namespace, (f"namespace {name}" for name in namespaces))
    yield from _over(options.max_moves_per_node, (f"node {node}" for each in disturbed for node in _nodes_of(each)))


def _nodes_of(disturbed: PlannedMove | Unplaced) -> list[str | None]:
    return [disturbed.source, disturbed.target] if isinstance(disturbed, PlannedMove) else [disturbed.source]


def _over(limit: int | None, counted: Iterable[str]) -> Iterator[str]:
    if limit is None:
        return
    for what, count in sorted(Counter(counted).items()):
        if count > limit:
            yield f"{what}: {count} moves of running pods, the budget is {limit}"
