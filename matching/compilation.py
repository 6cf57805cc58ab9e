"""Compiles the inner loops ahead of time, so that no decision waits for the compiler.

A controller first starts `COMMAND`, which leaves them on disk, and then calls `warm_up` off its event loop: what the
compiler takes, some hundred MiB, is never given back by the process that it runs in.
"""

from __future__ import annotations

import os
import sys
import time
from types import ModuleType

import numpy as np

from matching.array_types import NOWHERE
from matching.compiled.loading import LARGE, load, only_on_request
from matching.planners.stable.serial_choice import serial_choice
from matching.planning.move_order import order_moves
from matching.planning.prepared import prepare
from matching.planning.reasons.replay import ranks_of
from matching.problem import Node, Options, Pod, PodTerm, Problem, Rules, Selector
from matching.verify import certify

__all__ = ["COMMAND", "LARGE", "only_on_request", "warm_up"]

COMMAND = (sys.executable, "-m", "matching.compilation")
_NICE = 10

_APART = Rules(pod_anti_affinity=(PodTerm("host", Selector()),))

_NEEDS = (0.1, 0.1)


def warm_up() -> float | None:
    """Load and compile everything. Returns the seconds that took; None when numba is not installed."""
    started = time.perf_counter()
    kernels = load()
    if kernels is None:
        return None
    _run_all(kernels)
    return time.perf_counter() - started


def _run_all(kernels: ModuleType) -> None:
    """Every kernel once on a problem of a few pods: the types are those of every problem, so all kernels are compiled.
    One pod is unhappy, because such a pod ends a batch of the compiled loop, and one has anti-affinity."""
    nodes = tuple(Node(name, (1.0, 1.0), labels={"host": name}) for name in ("a", "b"))
    pods = (
        Pod("d/plain", "1", _NEEDS, _NEEDS, _NEEDS, node="a"),
        Pod("d/shy", "2", _NEEDS, _NEEDS, _NEEDS, node="a", rules=_APART),
        Pod("d/unhappy", "3", _NEEDS, _NEEDS, _NEEDS, node="b", happy=False),
    )
    problem = Problem(("cpu", "memory"), pods, nodes, Options())
    prepared = prepare(problem)
    choice = serial_choice(prepared, prepared.movable, prepared.arrays.current)
    ranks_of(prepared, choice, choice.at != NOWHERE)
    order_moves(prepared.arrays, list(range(len(pods))), prepared.arrays.current[::-1].copy())
    kernels.push(np.zeros(1, dtype=np.int64), 0, 0)
    prepared.own_node_ranks(~prepared.arrays.unhappy)
    certify(problem, (), (), ()).count()


if __name__ == "__main__":
    os.nice(_NICE)
    warm_up()
