"""The moves of a very large plan in brief: the rule, the rank and the distances, not what stood in the way elsewhere.

Nobody reads ten thousand lists of rejected nodes, and each costs time; `matching.explain` gives them on demand.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matching.arrays import NOWHERE, Floats, Ints, Mask
from matching.case import Case
from matching.compiled import loading
from matching.compiled.layout import Ranks
from matching.ledger import Ledger
from matching.outcome import Choice
from matching.plan import Measures, PlannedMove
from matching.problem import Availability
from matching.reasons.turns import turns
from matching.reasons.wording import PENDING, degraded, makes_room, may_not_stay, nearer_fit, unhappy_on
from matching.standing import Standing


def brief_moves(
    case: Case, choice: Choice, asked: Mask, before: Measures, ends: Mapping[int, str]
) -> dict[int, PlannedMove]:
    """Of the pods that are asked for, who all took part and got another node. `ends`: what to say of each target."""
    words, pods = _Words(case, choice, before, asked), np.flatnonzero(asked)
    moves: dict[int, PlannedMove] = {}
    for pod, target, listed in zip(
        pods.tolist(), choice.at[pods].tolist(), case.candidates.numbers(pods).tolist(), strict=True
    ):
        who, name, rank = case.arrays.pods[pod], case.arrays.nodes[target].name, words.rank[pod]
        place = f"{name} is choice {rank} of {listed}, distance {words.there[pod]:.2f}; {ends[target]}"
        reasons = (words.why(pod), place, *words.less_headroom(pod))
        moves[pod] = PlannedMove(who.key, who.uid, who.node, name, rank, reasons, strategy=who.strategy)
    return moves


class _Words:
    def __init__(self, case: Case, choice: Choice, before: Measures, asked: Mask) -> None:
        ranks = ranks_of(case, choice, asked)
        self._case, self._before, self._headroom = case, before, choice.headroom
        self._home, self._unhappy = case.arrays.home.tolist(), case.arrays.unhappy.tolist()
        self._may_stay = case.candidates.table(np.flatnonzero(asked))[2].tolist()
        self._nearer, self._here = ranks.nearer_than_home.tolist(), ranks.here.tolist()
        self.rank: list[int] = ranks.rank.tolist()
        self.there: list[float] = ranks.there.tolist()

    def why(self, pod: int) -> str:
        """Why this pod is moved."""
        home = self._home[pod]
        if home == NOWHERE:
            return PENDING
        name = self._case.arrays.nodes[home].name
        if not self._may_stay[pod]:
            return may_not_stay(name, self._case.candidates.why_not(pod, home))
        if self._unhappy[pod]:
            return unhappy_on(name, self._before.node_load[name])
        if self._nearer[pod]:
            return nearer_fit(name, self.there[pod], self._here[pod], self._case.arrays.options.inertia)
        return makes_room(name)

    def less_headroom(self, pod: int) -> tuple[str, ...]:
        if pod not in self._headroom:
            return ()
        return (degraded(self._headroom[pod], self._case.arrays.options.headroom),)


def ranks_of(case: Case, choice: Choice, asked: Mask) -> Ranks:
    """Compiled where there are kernels; one by one for unhappy pods and soft wishes, whose lists are not by distance
    alone."""
    arrays, number = case.arrays, len(case.arrays.pods)
    kernels = loading.kernels(int(asked.sum()), len(arrays.nodes))
    slowly = asked.copy()
    if kernels is not None:
        slowly &= arrays.choosy
    ranks = Ranks(
        choice.at,
        asked & ~slowly,
        np.zeros(number, dtype=np.int64),
        np.zeros(number, dtype=bool),
        np.zeros(number),
        np.zeros(number),
    )
    if kernels is not None:
        arena = case.ground.arena(Ledger(arrays, arrays.home), Standing(arrays))
        ranked = case.ranking[choice.chose[case.ranking]]
        after = arrays.options.availability is Availability.AFTER
        turn_by_turn = ranked if after else ranked[ranks.asked[ranked]]
        kernels.rank_targets(arena.places, arena.blocks, arena.guests, turn_by_turn, after, ranks)
    if slowly.any():
        _rank_one_by_one(case, choice, slowly, ranks)
    return ranks


def _rank_one_by_one(case: Case, choice: Choice, asked: Mask, ranks: Ranks) -> None:
    for turn in turns(case, choice, asked):
        pod, target, home = turn.pod, int(choice.at[turn.pod]), int(case.arrays.home[turn.pod])
        place = places(case.preferences.order(pod, case.candidates.of(pod), turn.standing), len(case.arrays.nodes))
        distances: Floats = case.preferences.distances(pod, turn.standing)
        ranks.rank[pod], ranks.there[pod] = place[target], distances[target]
        if home != NOWHERE:
            ranks.here[pod] = distances[home]
            ranks.nearer_than_home[pod] = 0 < place[target] < place[home]


def places(order: Ints, nodes: int) -> Ints:
    """By node its place in a list, from 1; 0 for those that are not in it."""
    place = np.zeros(nodes, dtype=np.int64)
    place[order] = np.arange(1, len(order) + 1)
    return place
