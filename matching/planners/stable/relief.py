"""The fewest moves that relieve the nodes in trouble: whose leaving pays most, one node after the other.

When a pod leaves an overcrowded node, those that stay are relieved as well. So for each such node two ways are
compared: pods leave until the node is relieved, where the pods that relieve it soonest go, be they happy or not; or
unhappy pods leave one by one, as long as each pays for its own move. A pod that leaves chooses at its turn among
the nodes that cure it (`weighed_placement`).

The loops end: each step moves a pod that has not moved yet.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from matching.array_types import Ints, Mask
from matching.model.arrays import share_of_room
from matching.planners.stable.weighed_placement import AS_GOOD, Weighed, WeighedPlacement

_MOST_TRIED = 24
"""Pods of one node whose moves are weighed at each step: the heaviest of the unhappy and of the happy ones."""

_MOST_LEAVE = 40
"""Pods that leave one node in one plan."""


def relieve(placement: WeighedPlacement, free: Mask, ranking: Ints) -> None:
    """`free`: the pods that may move."""
    for node in _most_failing_first(placement):
        _relieve_node(placement, _Leaving(placement, node, free, ranking))


def _most_failing_first(placement: WeighedPlacement) -> list[int]:
    failures, expectation = placement.failures, placement.expectation
    failing = expectation.likely(failures.loads()) * failures.residents
    nodes = np.flatnonzero(expectation.in_trouble)
    return [int(node) for node in nodes[np.argsort(-failing[nodes], kind="stable")]]


def _relieve_node(placement: WeighedPlacement, leaving: _Leaving) -> None:
    best, least = [], placement.worth()
    for way in (leaving.until_relieved, leaving.one_by_one):
        moves = way()
        worth = placement.worth()
        for move in reversed(moves):
            placement.put_back(move.pod)
        if worth < least:
            best, least = moves, worth
        if len(moves) <= 1 and best is moves:
            break
    for move in best:
        placement.put(move.pod, move.target)


class _Leaving:
    def __init__(self, placement: WeighedPlacement, node: int, free: Mask, ranking: Ints) -> None:
        self._placement, self._node = placement, node
        arrays = placement.arrays
        there = free & (arrays.current == node) & (placement.at == node)
        ranked = ranking[there[ranking]]
        weight = share_of_room(placement.expectation.demand[:, ranked], arrays.allocatable[:, [node]]).max(axis=0)
        heaviest = np.argsort(-weight, kind="stable")
        self._pods: list[int] = ranked[heaviest].tolist()
        self._weight = dict(zip(self._pods, weight[heaviest].tolist(), strict=True))

    def until_relieved(self) -> list[Weighed]:
        """Nothing if that is not reached. The pod that relieves the node alone and pays most leaves; while there is
        none, the heaviest."""
        moves: list[Weighed] = []
        while len(moves) < _MOST_LEAVE:
            options = self._possible({move.pod for move in moves}, self._pods)
            chosen = self._next(options)
            if chosen is None:
                break
            moves.append(chosen)
            self._placement.put(chosen.pod, chosen.target)
        if moves and not self._placement.is_cured(self._node):
            for move in reversed(moves):
                self._placement.put_back(move.pod)
            return []
        return moves

    def _next(self, options: list[Weighed]) -> Weighed | None:
        if self._placement.is_cured(self._node):
            return _best([option for option in options if option.net > 0])
        enough = [option for option in options if self._relieves(option)]
        return _best(enough) or max(options, key=lambda option: self._weight[option.pod], default=None)

    def one_by_one(self) -> list[Weighed]:
        unhappy = [pod for pod in self._pods if self._placement.arrays.unhappy[pod]]
        moves: list[Weighed] = []
        while len(moves) < _MOST_LEAVE:
            options = self._possible({move.pod for move in moves}, unhappy)
            best = _best([option for option in options if option.net > 0])
            if best is None:
                break
            moves.append(best)
            self._placement.put(best.pod, best.target)
        return moves

    def _possible(self, gone: set[int], pods: list[int]) -> list[Weighed]:
        """The moves of the heaviest pods that can leave; of each kind some."""
        unhappy = self._placement.arrays.unhappy
        left = [pod for pod in pods if pod not in gone]
        kinds = ([pod for pod in left if unhappy[pod]], [pod for pod in left if not unhappy[pod]])
        found: tuple[list[Weighed], list[Weighed]] = ([], [])
        while True:
            asked = [kind[: _MOST_TRIED // 2 - len(moves)] for kind, moves in zip(kinds, found, strict=True)]
            if not any(asked):
                break
            weighed = iter(self._placement.best_moves([pod for some in asked for pod in some]))
            for kind, moves, some in zip(kinds, found, asked, strict=True):
                del kind[: len(some)]
                moves += [move for move in islice(weighed, len(some)) if move is not None]
        return [*found[0], *found[1]]

    def _relieves(self, move: Weighed) -> bool:
        self._placement.put(move.pod, move.target)
        relieved = self._placement.is_cured(self._node)
        self._placement.put_back(move.pod)
        return relieved


def _best(options: list[Weighed]) -> Weighed | None:
    """Of those that are about as good the first: an unhappy pod rather than a happy one, and the heaviest."""
    most = max((option.net for option in options), default=0.0)
    return next((option for option in options if option.net >= most - AS_GOOD * option.price), None)
