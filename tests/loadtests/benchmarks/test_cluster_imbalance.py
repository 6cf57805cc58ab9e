from __future__ import annotations

from loadtests.benchmarks.cluster_setup import Moment, reached, spread_of, thinned

NODES = ("a", "b", "c", "d")


def test_what_is_above_the_mean_counts() -> None:
    spread = spread_of({"a": 6, "b": 2}, NODES, 8)

    assert (spread.imbalance, spread.fullest, spread.emptiest) == (4.0, 6, 0)
    assert spread_of(dict.fromkeys(NODES, 2), NODES, 8).imbalance == 0.0


def test_pods_without_a_node_are_not_balanced() -> None:
    assert spread_of({"a": 2, "b": 2}, NODES, 8).imbalance == 4.0


def test_the_first_time_that_it_was_so_low() -> None:
    course = [Moment(0.1, 9), Moment(0.2, 4), Moment(0.9, 6), Moment(1.2, 3)]

    assert reached(course, 5) == 0.2
    assert reached(course, 1) is None
    assert thinned(course, 1.0) == [Moment(0.9, 6), Moment(1.2, 3)]
