"""A choice replayed in rank order, so that each pod is explained by what it found at its turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.compiled import loading
from matching.compiled.layout import Ranks
from matching.model.ledger import Ledger
from matching.planning.outcome import Choice
from matching.planning.prepared import PreparedProblem
from matching.preferences import MatchedLoads
from matching.problem import Availability

_MANY = 8


@dataclass(frozen=True, slots=True)
class Turn:
    """Ledger and loads change with the next turn."""

    pod: int
    ledger: Ledger
    matched: MatchedLoads


def turns(prepared: PreparedProblem, choice: Choice, asked: Mask) -> Iterator[Turn]:
    """Of the `asked` pods that took part."""
    ledger = Ledger(prepared.arrays, np.where(choice.chose, NOWHERE, choice.at))
    matched = MatchedLoads(prepared.arrays, np.where(choice.chose, prepared.arrays.current, choice.at))
    ranked = prepared.ranking[choice.chose[prepared.ranking]]
    done = 0
    for index in np.flatnonzero(asked[ranked]).tolist():
        _put_all(prepared, choice, ledger, matched, ranked[done:index])
        done = index
        yield Turn(int(ranked[index]), ledger, matched)


def _put_all(prepared: PreparedProblem, choice: Choice, ledger: Ledger, matched: MatchedLoads, pods: Ints) -> None:
    """A few one by one, many at once except pods with inter-pod constraints."""
    if len(pods) > _MANY:
        rules = prepared.arrays.inter_pod
        together = choice.at[pods] != NOWHERE
        if rules is not None:
            together &= ~rules.involved[pods]
        ledger.put_all(pods[together], choice.at[pods[together]])
        matched.put_all(pods[together], choice.at[pods[together]])
        pods = pods[~together]
    for pod, node in zip(pods.tolist(), choice.at[pods].tolist(), strict=True):
        if node != NOWHERE:
            ledger.put(pod, node)
            matched.put(pod, node)
        else:
            matched.drop(pod)


def ranks_of(prepared: PreparedProblem, choice: Choice, asked: Mask) -> Ranks:
    """Compiled where possible; one by one for the pods that only numpy handles."""
    arrays, number = prepared.arrays, len(prepared.arrays.pods)
    kernels = loading.kernels(int(asked.sum()), len(arrays.nodes))
    slowly = asked.copy()
    if kernels is not None:
        slowly &= arrays.numpy_only
    ranks = Ranks(
        choice.at,
        asked & ~slowly,
        np.zeros(number, dtype=np.int64),
        np.zeros(number, dtype=bool),
        np.zeros(number),
        np.zeros(number),
    )
    if kernels is not None:
        state = prepared.kernel_input.state(Ledger(arrays, arrays.current), MatchedLoads(arrays))
        ranked = prepared.ranking[choice.chose[prepared.ranking]]
        after = arrays.options.availability is Availability.AFTER
        turn_by_turn = ranked if after else ranked[ranks.asked[ranked]]
        kernels.rank_targets(state.nodes, state.blocks, state.pods, turn_by_turn, after, ranks)
    if slowly.any():
        _rank_one_by_one(prepared, choice, slowly, ranks)
    return ranks


def _rank_one_by_one(prepared: PreparedProblem, choice: Choice, asked: Mask, ranks: Ranks) -> None:
    for turn in turns(prepared, choice, asked):
        pod, target, current = turn.pod, int(choice.at[turn.pod]), int(prepared.arrays.current[turn.pod])
        order = prepared.preferences.order(pod, prepared.candidates.of(pod), turn.matched)
        position = positions(order, len(prepared.arrays.nodes))
        distances: Floats = prepared.preferences.distances(pod, turn.matched)
        ranks.rank[pod], ranks.there[pod] = position[target], distances[target]
        if current != NOWHERE:
            ranks.here[pod] = distances[current]
            ranks.nearer_than_current[pod] = 0 < position[target] < position[current]


def positions(order: Ints, nodes: int) -> Ints:
    """By node its position in the order, from 1; 0 for nodes that are not in it."""
    found = np.zeros(nodes, dtype=np.int64)
    found[order] = np.arange(1, len(order) + 1)
    return found
