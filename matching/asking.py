"""One question without a plan: would this node take this pod, as things are?"""

from __future__ import annotations

from matching.arrays import arrays_of
from matching.candidates import Candidates
from matching.constraints.classes import judge
from matching.ledger import Ledger
from matching.problem import Problem


def would_take(problem: Problem, uid: str, node: str) -> bool:
    """By all hard constraints; peaks and headroom are wishes here. Both have to be in the problem."""
    arrays = arrays_of(problem)
    pod = next(number for number, each in enumerate(arrays.pods) if each.uid == uid)
    place = next(number for number, each in enumerate(arrays.nodes) if each.name == node)
    candidates = Candidates(arrays, judge(arrays.pods, arrays.nodes))
    return bool(candidates.of(pod)[place]) and Ledger(arrays, arrays.home).fits_on(pod, place)
