"""Everything that makes a plan impossible or forbidden, in words that name the objects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from matching.certificate.budgets import over_budget
from matching.certificate.lookalikes import Lookalikes
from matching.certificate.neighbours import broken_rules
from matching.certificate.rules import may_come
from matching.plan import PlannedMove, Stay, Unplaced
from matching.problem import Dumping, Node, Pod, Problem, Rules, Scope

_SLACK = 1e-9


def violations(
    problem: Problem, moves: Sequence[PlannedMove], stays: Sequence[Stay], unplaced: Sequence[Unplaced]
) -> Iterator[str]:
    pods = {pod.key: pod for pod in problem.pods}
    nodes = {node.name: node for node in problem.nodes}
    yield from _accounts(pods, moves, stays, unplaced)
    yield from _losing(problem, pods, unplaced)
    known = [move for move in moves if move.pod in pods and move.target in nodes]
    yield from (
        f"{move.pod}: target {move.target} is not a node of the problem" for move in moves if move.target not in nodes
    )
    admitted = _Admitted(nodes)
    for move in known:
        yield from _forbidden(problem, pods[move.pod], move, admitted)
    gone = [left.pod for left in unplaced if left.pod in pods]
    yield from _overfull(problem, pods, nodes, known, gone)
    yield from broken_rules(problem, known, gone)
    yield from over_budget(problem, moves, unplaced)


def _accounts(
    pods: dict[str, Pod], moves: Sequence[PlannedMove], stays: Sequence[Stay], unplaced: Sequence[Unplaced]
) -> Iterator[str]:
    named = Counter(entry.pod for part in (moves, stays, unplaced) for entry in part)
    yield from (f"{key}: named {count} times in the plan" for key, count in named.items() if count > 1)
    yield from (f"{key}: not a pod of the problem" for key in named if key not in pods)
    yield from (f"{key}: missing from the plan" for key in pods if key not in named)
    for stay in stays:
        if stay.pod in pods and pods[stay.pod].node != stay.node:
            yield f"{stay.pod}: cannot stay on {stay.node}, it is on {pods[stay.pod].node}"


def _losing(problem: Problem, pods: dict[str, Pod], unplaced: Sequence[Unplaced]) -> Iterator[str]:
    """Nobody who runs may end without a node, unless the problem allows it and the pod may be moved."""
    for entry in unplaced:
        pod = pods.get(entry.pod)
        if pod is None:
            continue
        if entry.source != pod.node:
            yield f"{pod.key}: dumped from {entry.source}, but is on {pod.node}"
        if pod.node is not None and (pod.fixed or problem.options.dumping is Dumping.NEVER):
            yield f"{pod.key}: runs on {pod.node} and would lose its node"


class _Admitted:
    """A pod's own rules asked of a node, once for all pods and nodes that are alike."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        self._number = {name: at for at, name in enumerate(nodes)}
        self._alike = Lookalikes(tuple(nodes.values()))
        self._known: dict[int, list[bool]] = {}

    def may_come(self, rules: Rules, node: str) -> bool:
        known = self._known.get(id(rules))
        if known is None:
            known = self._known[id(rules)] = self._alike.ask(rules, may_come).tolist()
        return known[self._number[node]]


def _forbidden(problem: Problem, pod: Pod, move: PlannedMove, admitted: _Admitted) -> Iterator[str]:
    node = admitted.nodes[move.target]
    if pod.fixed:
        yield f"{pod.key}: may not be moved ({pod.fixed})"
    if move.source != pod.node:
        yield f"{pod.key}: moves from {move.source}, but is on {pod.node}"
    if move.strategy is not pod.strategy:
        yield f"{pod.key}: moves by {move.strategy}, but its strategy is {pod.strategy}"
    if move.target == pod.node:
        yield f"{pod.key}: moves to the node it is on"
    if pod.node is not None and pod.node not in admitted.nodes:
        yield f"{pod.key}: is on {pod.node}, which is not in the problem, and may not be moved"
    scope = problem.options.scope
    if pod.node is not None and (scope is Scope.PENDING or (scope is Scope.UNHAPPY and pod.happy)):
        yield f"{pod.key}: is not in the scope {scope.value}"
    if not admitted.may_come(pod.rules, node.name):
        yield f"{pod.key}: may not run on {node.name}"
    if pod.node is not None and not node.measured:
        yield f"{pod.key}: {node.name} has no fresh metrics, no running pod may go there"


def _overfull(
    problem: Problem, pods: dict[str, Pod], nodes: dict[str, Node], moves: Sequence[PlannedMove], gone: Sequence[str]
) -> Iterator[str]:
    """What arrives must fit; a node that was overfull before and receives nothing is no fault of the plan."""
    arrivals: defaultdict[str, list[Pod]] = defaultdict(list)
    for move in moves:
        arrivals[move.target].append(pods[move.pod])
    ends = {key: pod.node for key, pod in pods.items()} | dict.fromkeys(gone)
    ends.update({move.pod: move.target for move in moves})
    residents: defaultdict[str, list[Pod]] = defaultdict(list)
    for key, end in ends.items():
        if end in arrivals:
            residents[end].append(pods[key])
    slack = [
        _SLACK * max((node.allocatable[axis] for node in problem.nodes), default=0.0)
        for axis in range(len(problem.axes))
    ]
    for name, arrived in sorted(arrivals.items()):
        node = nodes[name]
        if len(residents[name]) > node.max_pods:
            yield f"{name}: {len(residents[name])} pods, at most {node.max_pods} are allowed"
        for axis, title in enumerate(problem.axes):
            total = sum(pod.request[axis] for pod in residents[name])
            allowed = node.allocatable[axis]
            if total > allowed + slack[axis] * len(residents[name]) and any(pod.request[axis] > 0 for pod in arrived):
                yield f"{name}: requests of {title} add up to {total:g}, allocatable is {allowed:g}"
