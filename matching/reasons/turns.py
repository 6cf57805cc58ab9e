"""A choice gone through again in rank order, so that each pod is explained by what it found at its turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from matching.arrays import NOWHERE, Ints, Mask
from matching.case import Case
from matching.ledger import Ledger
from matching.outcome import Choice
from matching.standing import Standing

_MANY = 8


@dataclass(frozen=True, slots=True)
class Turn:
    """Ledger and standing go on changing: they are of this turn only until the next one is asked for."""

    pod: int
    ledger: Ledger
    standing: Standing


def turns(case: Case, choice: Choice, asked: Mask) -> Iterator[Turn]:
    """Of the pods that took part and are asked for."""
    ledger = Ledger(case.arrays, np.where(choice.chose, NOWHERE, choice.at))
    standing = Standing(case.arrays)
    ranked = case.ranking[choice.chose[case.ranking]]
    settled = 0
    for place in np.flatnonzero(asked[ranked]).tolist():
        _settle(case, choice, ledger, standing, ranked[settled:place])
        settled = place
        yield Turn(int(ranked[place]), ledger, standing)


def _settle(case: Case, choice: Choice, ledger: Ledger, standing: Standing, pods: Ints) -> None:
    """A few one by one, many at once but for those that rules between pods are about."""
    if len(pods) > _MANY:
        rules = case.arrays.neighbours
        together = choice.at[pods] != NOWHERE
        if rules is not None:
            together &= ~rules.involved[pods]
        ledger.put_all(pods[together], choice.at[pods[together]])
        standing.went_all(pods[together], choice.at[pods[together]])
        pods = pods[~together]
    for pod, node in zip(pods.tolist(), choice.at[pods].tolist(), strict=True):
        if node != NOWHERE:
            ledger.put(pod, node)
            standing.went(pod, node)
        else:
            standing.left(pod)
