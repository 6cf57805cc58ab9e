"""`function`: a user's own function in KSE's form, `get_allocation_plan(pods, nodes) -> {"pod": "node"}`.

The function gets the pods that may move and all nodes, both by name, each readable by attribute or by key. CPU is in
millicores and memory in MB, as in KSE. It returns the nodes it wants pods on. A pod that it does not name stays, and so
does a pod whose target may not or cannot take it. No pod is evicted to come back to the same node. It runs in a
process of its own, which is killed when it takes too long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from matching.array_types import NOWHERE, Ints
from matching.parameters import ParameterError
from matching.plan import Plan, Promise
from matching.planners.function_process import call_in_process
from matching.planners.function_records import Allocate, KseNode, KsePod
from matching.planners.kse import spread
from matching.planners.stable.budget_cut import cut_to_budget
from matching.planning.budget import within_budget
from matching.planning.load_balancing import Draft, LoadObjective, cut_outcome, unlimited_outcome
from matching.planning.node_loads import shares_of_room
from matching.planning.outcome import Outcome
from matching.planning.placement import LeastLoaded, as_wanted, heaviest_first, place_all
from matching.planning.prepared import PreparedProblem, prepare
from matching.planning.write_plan import write_plan
from matching.problem import Problem, ProblemError

_IN_KSE_UNITS = {"cpu": 1e3, "memory": 1e-6}


@dataclass(frozen=True, slots=True)
class FunctionPlanner:
    path: str = ""
    """Where the function is: `package.module:function`."""
    deadline: float = 30.0
    """Seconds after which its process is killed."""

    name: ClassVar[str] = "function"
    waives: ClassVar[frozenset[Promise]] = frozenset({Promise.NEVER_WORSE, Promise.DETERMINISTIC})

    def __post_init__(self) -> None:
        if not all(self.path.partition(":")):
            raise ParameterError("path", f"is {self.path!r}; write where your function is, as package.module:function")
        if not 0 < self.deadline < float("inf"):
            raise ParameterError("deadline", f"is {self.deadline!r}; write a number of seconds above 0")

    def plan(self, problem: Problem) -> Plan:
        def allocate(pods: list[KsePod], nodes: list[KseNode]) -> Mapping[str, str]:
            answer = call_in_process(self.path, pods, nodes, self.deadline)
            return cast(Mapping[str, str], answer)

        return plan_with(allocate, problem, self.name, self.path)


def plan_with(allocate: Allocate, problem: Problem, planner: str = "function", path: str = "the function") -> Plan:
    prepared = prepare(problem)
    view = _KseView(prepared)
    try:
        answer: object = allocate(view.pods(), view.nodes())
    except (ProblemError, ParameterError):
        raise
    except Exception as error:
        raise ProblemError(f"{path} failed with {type(error).__name__}: {error}") from error
    loads = shares_of_room(prepared, {axis: 1.0 for axis in problem.axes if axis not in problem.hard_only})
    objective = LoadObjective(loads, spread, "the spread of the node loads")
    draft = _draft(prepared, view.read(answer, path), objective, path)
    return write_plan(planner, prepared, _limited(prepared, draft, objective))


def _draft(prepared: PreparedProblem, wanted: Ints, objective: LoadObjective, path: str) -> Draft:
    arrays = prepared.arrays
    order = heaviest_first(prepared, objective.loads.sizes(), prepared.movable)
    placed = place_all(
        prepared, order, lambda at: as_wanted(prepared, wanted, LeastLoaded.starting_from(objective.loads, at))
    )
    asked = np.flatnonzero(wanted != arrays.current).tolist()
    names = {pod: arrays.nodes[wanted[pod]].name for pod in asked}
    stays = {
        pod: f"{path} wants it on {names[pod]}: {prepared.candidates.why_not(pod, int(wanted[pod])) or 'no room there'}"
        for pod in asked
    }
    return Draft(
        placed,
        why={pod: (f"{path} wants it on {names[pod]}",) for pod in asked if placed and placed.at[pod] == wanted[pod]},
        stay=f"{path} leaves it where it is",
        stays=stays,
        notes=tuple(f"{arrays.pods[pod].key} may not move: {stays[pod]}" for pod in asked if not prepared.movable[pod]),
    )


def _limited(prepared: PreparedProblem, draft: Draft, objective: LoadObjective) -> Outcome:
    outcome = unlimited_outcome(prepared, draft, objective)
    if within_budget(prepared.arrays, outcome.choice.at):
        return outcome
    return cut_outcome(prepared, draft, objective, cut_to_budget(prepared, outcome.choice).at)


class _KseView:
    """Translates pods and nodes to KSE's form, and the answer back."""

    def __init__(self, prepared: PreparedProblem) -> None:
        self._prepared = prepared
        arrays = prepared.arrays
        short = [pod.key.partition("/")[2] or pod.key for pod in arrays.pods]
        by_name: defaultdict[str, list[int]] = defaultdict(list)
        for at, name in enumerate(short):
            by_name[name].append(at)
        self._by_name = by_name
        self._by_key = {pod.key: at for at, pod in enumerate(arrays.pods)}
        self._names = [name if len(by_name[name]) == 1 else arrays.pods[at].key for at, name in enumerate(short)]
        self._scale = arrays.unit * np.array([_IN_KSE_UNITS.get(axis, 1.0) for axis in arrays.axes])

    def pods(self) -> list[KsePod]:
        return [self._pod(pod) for pod in np.flatnonzero(self._prepared.movable).tolist()]

    def nodes(self) -> list[KseNode]:
        arrays = self._prepared.arrays
        used = arrays.background.copy()
        np.add.at(used.T, arrays.current[arrays.current != NOWHERE], arrays.usage.T[arrays.current != NOWHERE])
        here: defaultdict[int, list[KsePod]] = defaultdict(list)
        for pod in np.flatnonzero(self._prepared.movable).tolist():
            here[int(arrays.current[pod])].append(self._pod(pod))
        return [
            KseNode(node.name, tuple(here[at]), self._amounts(used[:, at]), self._amounts(arrays.allocatable[:, at]))
            for at, node in enumerate(arrays.nodes)
        ]

    def read(self, answer: object, path: str) -> Ints:
        """The wanted node of each pod: its current one unless the answer names another."""
        if not isinstance(answer, Mapping):
            raise ProblemError(f"{path} answered {type(answer).__name__}; it must be a mapping of pods to nodes")
        nodes = {node.name: at for at, node in enumerate(self._prepared.arrays.nodes)}
        wanted = self._prepared.arrays.current.copy()
        for name, node in answer.items():
            pod = self._find(name, path)
            if not isinstance(node, str) or node not in nodes:
                raise ProblemError(f"{path} wants pod {name} on {node!r}, which is not a node of the problem")
            wanted[pod] = nodes[node]
        return wanted

    def _find(self, name: Any, path: str) -> int:
        if name in self._by_key:
            return self._by_key[name]
        found = self._by_name.get(name, []) if isinstance(name, str) else []
        if not found:
            raise ProblemError(f"{path} names pod {name!r}, which is not a pod of the problem")
        if len(found) > 1:
            keys = ", ".join(self._prepared.arrays.pods[at].key for at in found)
            raise ProblemError(f"{path} names pod {name!r}, but there are {keys}; use namespace/name")
        return found[0]

    def _pod(self, pod: int) -> KsePod:
        arrays, given = self._prepared.arrays, self._prepared.arrays.pods[pod]
        return KsePod(self._names[pod], given.namespace, given.node, self._amounts(arrays.usage[:, pod]))

    def _amounts(self, shares: Any) -> dict[str, float]:
        return dict(zip(self._prepared.arrays.axes, (shares * self._scale).round(9).tolist(), strict=True))
