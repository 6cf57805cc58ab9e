"""The counting reading of inter-pod constraints against the plain one, also while pods are put and taken away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.array_types import NOWHERE
from matching.model.arrays import arrays_of
from matching.model.ledger import Ledger
from matching.problem import Problem, Rules


@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_every_answer_is_the_plain_one_after_any_sequence_of_moves(
    seed: int, inter_pod_problem: Callable[..., Problem], slow_scheduler: Callable[..., Any]
) -> None:
    problem, pick = inter_pod_problem(seed), Random(seed)
    arrays = arrays_of(problem)
    names = [node.name for node in arrays.nodes]
    ledger, plain = Ledger(arrays, arrays.current), slow_scheduler(problem)
    for _ in range(6):
        for number, pod in enumerate(arrays.pods):
            expected = [plain.allows(pod.key, name) for name in names]
            assert ledger.inter_pod.allows(number).tolist() == expected, pod.key
            refused = [bool(ledger.inter_pod.why_not(number, node)) for node in range(len(names))]
            assert refused == [not fine for fine in expected]
        _disturb(ledger, plain, pick.randrange(len(arrays.pods)), pick)


def _disturb(ledger: Ledger, plain: Any, number: int, pick: Random) -> None:
    pod = sorted(plain.problem.pods, key=lambda each: each.key)[number]
    node = pick.randrange(len(plain.problem.nodes))
    if pod.node is None and plain.at[pod.key] is not None:
        ledger.inter_pod.take(number)
        plain.at[pod.key] = None
        return
    ledger.inter_pod.put(number, node)
    plain.at[pod.key] = sorted(each.name for each in plain.problem.nodes)[node]


def test_a_running_pod_counts_where_it_is_until_it_is_put_elsewhere(inter_pod_problem: Callable[..., Problem]) -> None:
    arrays = arrays_of(inter_pod_problem(3))
    nowhere = np.full(len(arrays.pods), NOWHERE)
    taken, kept = Ledger(arrays, nowhere).inter_pod, Ledger(arrays, arrays.current).inter_pod
    for number in range(len(arrays.pods)):
        assert taken.allows(number).tolist() == kept.allows(number).tolist()
        kept.take(number)
        assert taken.allows(number).tolist() == kept.allows(number).tolist()


def test_without_such_rules_everything_is_allowed(inter_pod_problem: Callable[..., Problem]) -> None:
    problem = inter_pod_problem(3)
    plain = replace(problem, pods=tuple(replace(pod, rules=Rules()) for pod in problem.pods))
    arrays = arrays_of(plain)
    inter_pod = Ledger(arrays, arrays.current).inter_pod
    assert arrays.inter_pod is None
    assert all(inter_pod.allows(number).all() for number in range(len(arrays.pods)))
    assert inter_pod.why_not(0, 1) == ""
