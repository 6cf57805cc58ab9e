"""Columns that are taken over from the problem before are those that are read anew."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.model import pod_columns as module
from matching.model.pod_columns import PodColumns, pod_columns
from matching.problem import Pod, ProblemError, Rules

AXES = ("cpu", "memory")


def pod(name: str, cpu: float = 1.0) -> Pod:
    return Pod(
        key=f"shop/{name}", uid=f"uid-{name}", usage=(cpu, 2.0), request=(1.0, 2.0), peak=(cpu + 1, 2.0), node="n"
    )


def read_anew(pods: list[Pod], monkeypatch: pytest.MonkeyPatch) -> PodColumns:
    with monkeypatch.context() as patch:
        patch.setattr(module, "_last", None)
        return pod_columns(pods, AXES)


def same(one: PodColumns, other: PodColumns) -> bool:
    names = (
        "request",
        "usage",
        "usual",
        "peak",
        "rank_cpu",
        "priority",
        "fixed",
        "without_node",
        "happy",
    )
    rules = [[each.all_rules[number] for number in each.rule_class] for each in (one, other)]
    return (
        one.pods == other.pods
        and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)
        and rules[0] == rules[1]
        and set(one.all_rules) == set(other.all_rules)
        and (one.keys, one.uids, one.position) == (other.keys, other.uids, other.position)
    )


changes = st.lists(st.tuples(st.sampled_from(["new", "gone", "changed", "history"]), st.integers(0, 99)), max_size=4)


@given(st.lists(changes, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_what_is_taken_over_is_what_would_be_read(rounds: list[list[tuple[str, int]]], random: Random) -> None:
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(module, "_last", None)
    pods = [
        replace(pod(f"p{number:02}"), rules=Rules(node_selector=(("zone", str(number % 3)),))) for number in range(24)
    ]
    numbers = itertools.count()
    random.shuffle(pods)
    try:
        for round_ in rounds:
            for what, number in round_:
                at = number % len(pods)
                if what == "new":
                    pods.append(pod(f"p{number:02}-{next(numbers)}", 1.0 + number))
                elif what == "gone" and len(pods) > 12:
                    del pods[at]
                elif what == "history":
                    pods[at] = replace(pods[at], mean=(float(number), 1.0), idle_cpu=0.5)
                else:
                    pods[at] = replace(pods[at], usage=(float(number), 2.0), rules=Rules(), happy=False, fixed="no")
            found = pod_columns(pods, AXES)
            assert same(found, read_anew(pods, monkeypatch))
    finally:
        monkeypatch.undo()


def test_a_name_that_occurs_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_last", None)
    pods = [pod(f"p{number:02}") for number in range(12)]
    pod_columns(pods, AXES)
    for wrong in (replace(pod("other"), key=pods[0].key), replace(pod("other"), uid=pods[0].uid), pods[3]):
        with pytest.raises(ProblemError, match="occurs 2 times"):
            pod_columns([*pods, wrong], AXES)


def test_a_new_pod_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_last", None)
    pods = [pod(f"p{number:02}") for number in range(12)]
    pod_columns(pods, AXES)
    with pytest.raises(ProblemError, match="usage of cpu is nan"):
        pod_columns([*pods, replace(pod("other"), usage=(float("nan"), 1.0))], AXES)
