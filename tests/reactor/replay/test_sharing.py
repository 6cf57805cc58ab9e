"""How the CPU of a full node is shared, and what its pods feel of it."""

from __future__ import annotations

import numpy as np
import pytest

from reactor.replay.sharing import share_out

NODES = np.zeros(3, np.int64)
EQUAL = np.full(3, 0.1)


def test_on_a_full_node_the_pod_that_wants_most_is_held_back_and_the_others_are_not() -> None:
    found = share_out(NODES, np.array([3.0, 0.5, 1.0]), EQUAL, np.array([4.0]), np.zeros(1))
    assert found.got.tolist() == pytest.approx([2.5, 0.5, 1.0])
    assert found.felt.tolist() == pytest.approx([4.5 / 4, 1.5 / 4, 2.5 / 4]), (
        "the others count with what it wants itself"
    )


def test_those_that_are_held_back_share_by_what_they_request() -> None:
    found = share_out(NODES, np.array([3.0, 3.0, 0.1]), np.array([0.1, 0.3, 0.1]), np.array([4.1]), np.zeros(1))
    assert found.got.tolist() == pytest.approx([1.0, 3.0, 0.1])
    assert found.felt[0] > 1 >= found.felt[1]


def test_what_else_runs_comes_first_and_nodes_are_apart() -> None:
    node, wanted = np.array([1, 0, 1]), np.array([2.0, 1.0, 2.0])
    found = share_out(node, wanted, EQUAL, np.array([4.0, 4.0]), np.array([0.0, 1.0]))
    assert found.felt.tolist() == pytest.approx([5.0 / 4, 1.0 / 4, 5.0 / 4])
    assert found.got.tolist() == pytest.approx([1.5, 1.0, 1.5])


def test_a_cluster_without_pods() -> None:
    nothing = np.zeros(0)
    assert not len(share_out(np.zeros(0, np.int64), nothing, nothing, np.array([4.0]), np.zeros(1)).got)
