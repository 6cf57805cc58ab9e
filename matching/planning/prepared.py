"""A problem prepared for a planner: arrays, candidates, preferences.

Preparing 150,000 pods takes longer than matching a few of them. So the parts that do not depend on the planner are kept
as long as the Problem itself lives: a second plan of the same Problem (another planner, `--compare`) reuses them.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.cached_property import cached_property
from matching.compiled import loading
from matching.constraints.node_rules import node_rules
from matching.model.arrays import Arrays, arrays_of, movable
from matching.model.candidates import Candidates
from matching.planning.kernel_state import KernelInput, kernel_input
from matching.preferences import OwnNodeRanks, Preferences, no_ranks, own_node_ranks, ranking
from matching.problem import Problem


@dataclass(frozen=True, slots=True)
class SharedParts:
    arrays: Arrays
    candidates: Candidates
    ranking: Ints


_cache: dict[int, tuple[weakref.ref[Problem], SharedParts]] = {}


def shared_parts(problem: Problem) -> SharedParts:
    """Raise ProblemError, naming the object, when the problem is not valid."""
    key = id(problem)
    known = _cache.get(key)
    if known is not None and known[0]() is problem:
        return known[1]
    arrays = arrays_of(problem)
    rules = node_rules(arrays.rule_class, arrays.all_rules, arrays.pods, arrays.nodes)
    made = SharedParts(arrays, Candidates(arrays, rules), ranking(arrays))
    _cache[key] = (weakref.ref(problem, lambda _: _cache.pop(key, None)), made)
    return made


@dataclass(frozen=True)
class PreparedProblem:
    problem: Problem
    shared: SharedParts
    movable: Mask
    """By the scope of the problem."""
    preferences: Preferences

    @property
    def arrays(self) -> Arrays:
        return self.shared.arrays

    @property
    def candidates(self) -> Candidates:
        return self.shared.candidates

    @property
    def ranking(self) -> Ints:
        return self.shared.ranking

    def own_node_ranks(self, pods: Mask) -> OwnNodeRanks:
        """Of those pods, which must be movable and not unhappy. Pods with soft constraints always run in numpy."""
        arrays, kernels = self.arrays, loading.kernels(int(pods.sum()), len(self.arrays.nodes))
        if kernels is None or not arrays.nodes:
            return own_node_ranks(arrays, self.candidates, self.preferences, pods)
        ranks, slow = no_ranks(arrays), pods & arrays.numpy_only
        fast = np.flatnonzero(pods & ~slow & (arrays.current != NOWHERE))
        kernels.rank_own_nodes(self.kernel_input.blocks, self.kernel_input.pods, fast, ranks.by_inertia, ranks.rank)
        if not slow.any():
            return ranks
        others = own_node_ranks(arrays, self.candidates, self.preferences, slow)
        by_inertia = np.where(slow, others.by_inertia, ranks.by_inertia)
        return OwnNodeRanks(by_inertia, np.where(slow, others.rank, ranks.rank))

    @cached_property
    def kernel_input(self) -> KernelInput:
        """The movable and the pending pods for the compiled loops."""
        asked = self.movable | self.arrays.pending
        return kernel_input(self.arrays, self.candidates, self.preferences, asked)


def prepare(problem: Problem) -> PreparedProblem:
    shared = shared_parts(problem)
    may_move = movable(shared.arrays, problem.options.scope)
    preferences = Preferences(shared.arrays, may_move, shared.ranking)
    return PreparedProblem(problem, shared, may_move, preferences)
