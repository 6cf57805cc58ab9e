"""Violations: everything that makes a plan impossible or forbidden, in words that name the objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from matching.plan import PlannedMove, Stay, Stays, Unplaced
from matching.problem import Dumping, Node, Pod, Problem, Rules, Scope
from matching.verify.node_rules import NodeGroups, about_to_be_removed, closed_to_moves, may_come
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
    yield from _order_violations(problem, pods, known, unplaced)
    yield from budget_violations(problem, moves, unplaced)


def order_violations(
    problem: Problem, moves: Sequence[PlannedMove], unplaced: Sequence[Unplaced] = ()
) -> Iterator[str]:
    """Moves that cannot be carried out at their turn: by room, or by a rule between pods. The pods that end without a
    node leave before the first move."""
    yield from _order_violations(problem, {pod.key: pod for pod in problem.pods}, moves, unplaced)


def _order_violations(
    problem: Problem, pods: dict[str, Pod], moves: Sequence[PlannedMove], unplaced: Sequence[Unplaced]
) -> Iterator[str]:
    gone = [left.pod for left in unplaced]
    yield from _without_room(problem, pods, moves, set(gone))
    yield from pod_rule_violations(problem, moves, gone)
    yield from volume_limit_violations(problem, moves, gone)


def _wrong_entries(
    pods: dict[str, Pod], moves: Sequence[PlannedMove], stays: Sequence[Stay], unplaced: Sequence[Unplaced]
) -> Iterator[str]:
    kept, nodes = stay_ends(stays)
    entries = [*kept, *(entry.pod for part in (moves, unplaced) for entry in part)]
    if not (len(entries) == len(pods) and pods.keys() == set(entries)):  # the same, but slow for very many pods
        named = Counter(entries)
        yield from (f"{key}: named {count} times in the plan" for key, count in named.items() if count > 1)
        yield from (f"{key}: not a pod of the problem" for key in named if key not in pods)
        yield from (f"{key}: missing from the plan" for key in pods if key not in named)
    for key, pod, node in zip(kept, map(pods.get, kept), nodes, strict=True):
        if pod is not None and pod.node != node:
            yield f"{key}: cannot stay on {node}, it is on {pod.node}"


def stay_ends(stays: Sequence[Stay]) -> tuple[list[str], list[str]]:
    """Pods and nodes, without the reasons: these may not be written yet."""
    return stays.ends() if isinstance(stays, Stays) else ([stay.pod for stay in stays], [stay.node for stay in stays])


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
    elif pod.node is not None and about_to_be_removed(node):
        yield f"{pod.key}: an autoscaler is about to remove {node.name}, no running pod may go there"
    elif pod.node is not None and closed_to_moves(node):
        yield f"{pod.key}: {node.name} is cordoned, no running pod may go there"


def _without_room(
    problem: Problem, pods: dict[str, Pod], moves: Sequence[PlannedMove], gone: set[str]
) -> Iterator[str]:
    """With the moves before it done, a pod must fit on its target by number and requests. A node that was overfull
    before and receives nothing is not the plan's fault."""
    nodes = {node.name: node for node in problem.nodes}
    there, requested = _requests_by_node(problem, {move.target for move in moves}, gone)
    where = {move.pod: None if move.pod in gone else pods[move.pod].node for move in moves}
    for move in moves:
        pod, node, source = pods[move.pod], nodes[move.target], where[move.pod]
        request = thousandths(pod.request)
        if source in there:
            there[source] -= 1
            requested[source] = [total - amount for total, amount in zip(requested[source], request, strict=True)]
        total = [total + amount for total, amount in zip(requested[node.name], request, strict=True)]
        there[node.name], requested[node.name], where[move.pod] = there[node.name] + 1, total, node.name
        if there[node.name] > node.max_pods:
            many = f"{there[node.name]} pods, at most {node.max_pods} are allowed"
            yield f"{pod.key}: at its turn {node.name} has no room: {many}"
        for title, amount, sum_, allowed in zip(
            problem.axes, request, total, thousandths(node.allocatable), strict=True
        ):
            if amount > 0 and sum_ > allowed:
                sizes = f"add up to {sum_ / 1000:.16g}, allocatable is {allowed / 1000:.16g}"
                yield f"{pod.key}: at its turn {node.name} has no room: requests of {title} {sizes}"


def _requests_by_node(problem: Problem, names: set[str], gone: set[str]) -> tuple[dict[str, int], dict[str, list[int]]]:
    """How many pods those nodes have now, and the sums of their requests by axis, in thousandths."""
    here = {name: list[tuple[int, ...]]() for name in names}
    for pod in problem.pods:
        if pod.node in here and pod.key not in gone:
            here[pod.node].append(thousandths(pod.request))
    sums = {name: [sum(axis) for axis in zip(*there, strict=True)] for name, there in here.items()}
    nothing = [0] * len(problem.axes)
    return {name: len(there) for name, there in here.items()}, {name: found or nothing for name, found in sums.items()}


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
