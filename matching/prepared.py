"""What is made of a problem once and serves every plan of it: arrays, what the rules allow, the ranking.

For 150,000 pods this takes longer than to match a few of them, so it is kept as long as the Problem itself lives: a
second plan of the same Problem (another planner, `--compare`) finds it ready. Whoever wants it ready before the first
plan calls `prepared`.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field

from matching.arrays import NOWHERE, Arrays, Ints, arrays_of
from matching.candidates import Candidates
from matching.columns import from_columns
from matching.constraints.classes import judge
from matching.plan import Stay
from matching.preferences import ranking
from matching.problem import Pod, Problem


@dataclass(frozen=True, slots=True)
class Prepared:
    arrays: Arrays
    candidates: Candidates
    ranking: Ints
    _staying: dict[str, tuple[Stay | None, ...]] = field(default_factory=dict)

    def staying(self, reason: str) -> tuple[Stay | None, ...]:
        """By pod that it stays where it runs, all for one reason; None for pods that run nowhere."""
        found = self._staying.get(reason)
        if found is None:
            running = (self.arrays.home != NOWHERE).tolist()
            written = stays_of(self.arrays.pods, [reason] * len(running))
            found = self._staying[reason] = tuple(
                stay if runs else None for stay, runs in zip(written, running, strict=True)
            )
        return found


def stays_of(pods: Sequence[Pod], reasons: Sequence[str]) -> list[Stay]:
    """Of pods that run, each with its reason."""
    keys, uids, nodes = [pod.key for pod in pods], [pod.uid for pod in pods], [pod.node or "" for pod in pods]
    return from_columns(Stay, {"pod": keys, "uid": uids, "node": nodes, "reason": reasons})


_kept: dict[int, tuple[weakref.ref[Problem], Prepared]] = {}


def prepared(problem: Problem) -> Prepared:
    """Raise ProblemError, naming the object, when the problem cannot be meant."""
    key = id(problem)
    known = _kept.get(key)
    if known is not None and known[0]() is problem:
        return known[1]
    arrays = arrays_of(problem)
    made = Prepared(arrays, Candidates(arrays, judge(arrays.pods, arrays.nodes)), ranking(arrays))
    _kept[key] = (weakref.ref(problem, lambda _: _kept.pop(key, None)), made)
    return made
