"""KSE's form of a planner: a user's own function `get_allocation_plan(pods, nodes) -> {"pod": "node"}`.

The function gets the pods that may move and all nodes, both by name, each readable by attribute or by key. CPU is in
millicores and memory in MB, as KSE has them. It answers with the nodes it wants pods on; a pod that it does not name
stays, and so does one whose target may not or cannot take it. Nobody is evicted to come back to the same node.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from matching.arrays import NOWHERE, Ints
from matching.case import Case, open_case
from matching.outcome import Outcome
from matching.parameters import ParameterError
from matching.plan import Plan, Promise
from matching.planners.budget import within_budget
from matching.planners.cutting import cut_to_budget
from matching.planners.greedy import spread
from matching.planners.node_loads import shares_of_room
from matching.planners.placing import LeastLoaded, as_wanted, heaviest_first, place_everybody
from matching.planners.settling import Aim, Wish, as_wished, shortened
from matching.problem import Problem, ProblemError
from matching.writing import write_plan

_IN_KSE_UNITS = {"cpu": 1e3, "memory": 1e-6}


def _by_key(self: object, key: str) -> object:
    try:
        return getattr(self, key)
    except AttributeError:
        raise KeyError(key) from None


@dataclass(frozen=True, slots=True)
class KsePod:
    name: str
    """Its own name where that is unique, else namespace/name."""
    namespace: str
    node: str | None
    metrics: Mapping[str, float]
    """cpu in millicores, memory in MB; other axes in their own unit."""

    __getitem__ = _by_key


@dataclass(frozen=True, slots=True)
class KseNode:
    name: str
    pods: tuple[KsePod, ...]
    """Those that may move."""
    metrics: Mapping[str, float]
    """Use of the whole node."""
    allocatable: Mapping[str, float]

    __getitem__ = _by_key


Allocate = Callable[[list[KsePod], list[KseNode]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class FunctionPlanner:
    path: str = ""
    """Where the function is: `package.module:function`."""

    name: ClassVar[str] = "function"
    waives: ClassVar[frozenset[Promise]] = frozenset({Promise.NEVER_WORSE, Promise.DETERMINISTIC})

    def __post_init__(self) -> None:
        if not all(self.path.partition(":")):
            raise ParameterError("path", f"is {self.path!r}; write where your function is, as package.module:function")

    def plan(self, problem: Problem) -> Plan:
        return plan_with(load_function(self.path), problem, self.name, self.path)


def plan_with(allocate: Allocate, problem: Problem, planner: str = "function", path: str = "the function") -> Plan:
    case = open_case(problem)
    border = _Border(case)
    try:
        answer: object = allocate(border.pods(), border.nodes())
    except Exception as error:
        raise ProblemError(f"{path} failed with {type(error).__name__}: {error}") from error
    loads = shares_of_room(case, {axis: 1.0 for axis in problem.axes if axis not in problem.hard_only})
    aim = Aim(loads, spread, "the spread of the node loads")
    return write_plan(planner, case, _within_budget(case, _wish(case, border.read(answer, path), aim, path), aim))


def _wish(case: Case, wanted: Ints, aim: Aim, path: str) -> Wish:
    arrays = case.arrays
    order = heaviest_first(case, aim.loads.sizes(), case.movable)
    placed = place_everybody(case, order, lambda at: as_wanted(case, wanted, LeastLoaded.beside(aim.loads, at)))
    asked = np.flatnonzero(wanted != arrays.home).tolist()
    names = {pod: arrays.nodes[wanted[pod]].name for pod in asked}
    stays = {
        pod: f"{path} wants it on {names[pod]}: {case.candidates.why_not(pod, int(wanted[pod])) or 'no room there'}"
        for pod in asked
    }
    return Wish(
        placed,
        why={pod: (f"{path} wants it on {names[pod]}",) for pod in asked if placed and placed.at[pod] == wanted[pod]},
        stay=f"{path} leaves it where it is",
        stays=stays,
        notes=tuple(f"{arrays.pods[pod].key} may not move: {stays[pod]}" for pod in asked if not case.movable[pod]),
    )


def _within_budget(case: Case, wish: Wish, aim: Aim) -> Outcome:
    outcome = as_wished(case, wish, aim)
    if within_budget(case.arrays, outcome.choice.at):
        return outcome
    return shortened(case, wish, aim, cut_to_budget(case, outcome.choice).at)


def load_function(path: str) -> Allocate:
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ParameterError("path", f"{path!r} cannot be loaded: {error}") from error
    if not callable(found):
        raise ParameterError("path", f"{path!r} is no function")
    return cast(Allocate, found)


class _Border:
    """Our pods and nodes as KSE's, and KSE's answer as ours."""

    def __init__(self, case: Case) -> None:
        self._case = case
        arrays = case.arrays
        short = [pod.key.partition("/")[2] or pod.key for pod in arrays.pods]
        by_name: defaultdict[str, list[int]] = defaultdict(list)
        for at, name in enumerate(short):
            by_name[name].append(at)
        self._by_name = by_name
        self._by_key = {pod.key: at for at, pod in enumerate(arrays.pods)}
        self._names = [name if len(by_name[name]) == 1 else arrays.pods[at].key for at, name in enumerate(short)]
        self._scale = arrays.unit * np.array([_IN_KSE_UNITS.get(axis, 1.0) for axis in arrays.axes])

    def pods(self) -> list[KsePod]:
        return [self._pod(pod) for pod in np.flatnonzero(self._case.movable).tolist()]

    def nodes(self) -> list[KseNode]:
        arrays = self._case.arrays
        used = arrays.background.copy()
        np.add.at(used.T, arrays.home[arrays.home != NOWHERE], arrays.usage.T[arrays.home != NOWHERE])
        here: defaultdict[int, list[KsePod]] = defaultdict(list)
        for pod in np.flatnonzero(self._case.movable).tolist():
            here[int(arrays.home[pod])].append(self._pod(pod))
        return [
            KseNode(node.name, tuple(here[at]), self._amounts(used[:, at]), self._amounts(arrays.allocatable[:, at]))
            for at, node in enumerate(arrays.nodes)
        ]

    def read(self, answer: object, path: str) -> Ints:
        """For each pod the node it is wanted on, where it is unless the answer says otherwise."""
        if not isinstance(answer, Mapping):
            raise ProblemError(f"{path} answered {type(answer).__name__}; it must be a mapping of pods to nodes")
        nodes = {node.name: at for at, node in enumerate(self._case.arrays.nodes)}
        wanted = self._case.arrays.home.copy()
        for name, node in answer.items():
            pod = self._find(name, path)
            if not isinstance(node, str) or node not in nodes:
                raise ProblemError(f"{path} wants pod {name} on {node!r}, which is no node of the problem")
            wanted[pod] = nodes[node]
        return wanted

    def _find(self, name: Any, path: str) -> int:
        if name in self._by_key:
            return self._by_key[name]
        found = self._by_name.get(name, []) if isinstance(name, str) else []
        if not found:
            raise ProblemError(f"{path} names pod {name!r}, which is no pod of the problem")
        if len(found) > 1:
            keys = ", ".join(self._case.arrays.pods[at].key for at in found)
            raise ProblemError(f"{path} names pod {name!r}, but there are {keys}; use namespace/name")
        return found[0]

    def _pod(self, pod: int) -> KsePod:
        who = self._case.arrays.pods[pod]
        return KsePod(self._names[pod], who.namespace, who.node, self._amounts(self._case.arrays.usage[:, pod]))

    def _amounts(self, shares: Any) -> dict[str, float]:
        return dict(zip(self._case.arrays.axes, (shares * self._scale).round(9).tolist(), strict=True))
