"""Every kernel once, on a problem of a few pods: the types are those of every problem, so all are compiled for good.

One of the pods is unhappy, since that is what makes a run of plain pods end early, and one keeps away from others.
"""

from __future__ import annotations

import numpy as np

from matching.arrays import NOWHERE
from matching.case import open_case
from matching.compiled import sequence
from matching.order import order_moves
from matching.planners.serial_choice import serial_choice
from matching.problem import Node, Options, Pod, PodTerm, Problem, Rules, Selector
from matching.reasons.brief import ranks_of
from matching.verify import certify

_APART = Rules(pod_anti_affinity=(PodTerm("host", Selector()),))
_NEEDS = (0.1, 0.1)


def compile_all() -> None:
    nodes = tuple(Node(name, (1.0, 1.0), labels={"host": name}) for name in ("a", "b"))
    pods = (
        Pod("d/plain", "1", _NEEDS, _NEEDS, _NEEDS, node="a"),
        Pod("d/shy", "2", _NEEDS, _NEEDS, _NEEDS, node="a", rules=_APART),
        Pod("d/unhappy", "3", _NEEDS, _NEEDS, _NEEDS, node="b", happy=False),
    )
    problem = Problem(("cpu", "memory"), pods, nodes, Options())
    case = open_case(problem)
    choice = serial_choice(case, case.movable, case.arrays.home)
    ranks_of(case, choice, choice.at != NOWHERE)
    order_moves(case.arrays, list(range(len(pods))), case.arrays.home[::-1].copy())
    sequence.push(np.zeros(1, dtype=np.int64), 0, 0)
    case.tastes(~case.arrays.unhappy)
    certify(problem, (), (), ())
