"""`balance` knows when not to act: noise, price, and the doubt that grows with the number of nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from matching.case import open_case
from matching.plan import Plan
from matching.planners.balance import BalancePlanner
from matching.planners.balance.board import Board
from matching.planners.balance.noise import errors_to_pass, move_errors, swap_error
from matching.problem import Node, Options, Pod, Problem

Ends = Callable[[Plan], dict[str, str | None]]


def _cluster(seed: int, spread: float, sigma: float, nodes: int = 8, each: int = 12) -> Problem:
    """Pods that use 5 on average; half of the nodes have `spread` more per pod; one sample with noise `sigma`."""
    draw = np.random.default_rng(seed)
    pods = []
    for at in range(nodes * each):
        mean = 5 + (spread if at % nodes < nodes // 2 else 0.0)
        usage = max(0.1, float(draw.normal(mean, sigma)))
        pods.append(Pod(f"d/{at:03}", f"{at}", (usage,), (0,), (usage + 3 * sigma,), node=f"n{at % nodes}"))
    return Problem(("cpu",), tuple(pods), tuple(Node(f"n{at}", (150,)) for at in range(nodes)), Options(headroom=0))


def test_loads_that_differ_by_chance_alone_are_left_alone() -> None:
    acted = [bool(BalancePlanner().plan(_cluster(seed, 0.0, 1.0)).moves) for seed in range(40)]
    assert sum(acted) <= 4
    careless = [bool(BalancePlanner(confidence=0).plan(_cluster(seed, 0.0, 1.0)).moves) for seed in range(40)]
    assert all(careless)


def test_loads_that_differ_in_truth_are_evened_out() -> None:
    for seed in range(10):
        plan = BalancePlanner().plan(_cluster(seed, 2.0, 1.0))
        assert plan.moves
        assert plan.after.spread < plan.before.spread


def test_the_same_spread_is_acted_on_or_not_by_its_noise_alone() -> None:
    """No fixed spread tells."""
    quiet = _cluster(1, 0.6, 0.0)
    noisy = replace(quiet, pods=tuple(replace(pod, peak=(pod.usage[0] + 6.0,)) for pod in quiet.pods))
    assert BalancePlanner().plan(quiet).moves
    plan = BalancePlanner().plan(noisy)
    assert not plan.moves
    assert any("noise" in note for note in plan.notes)


def test_the_price_holds_back_what_the_noise_does_not() -> None:
    quiet = _cluster(1, 0.9, 0.0)
    assert BalancePlanner().plan(quiet).moves
    assert not BalancePlanner(outage=60.0).plan(quiet).moves


def test_given_noise_takes_the_place_of_the_peaks() -> None:
    quiet = _cluster(1, 0.6, 0.0)
    assert BalancePlanner(noise=0.0).plan(quiet).moves
    assert not BalancePlanner(noise=0.6).plan(quiet).moves


def test_doubt_is_shared_by_the_nodes() -> None:
    asked = [errors_to_pass(0.95, nodes) for nodes in (2, 4, 1000)]
    assert asked == [pytest.approx(1.96, abs=0.01), pytest.approx(2.24, abs=0.01), pytest.approx(3.89, abs=0.01)]
    assert errors_to_pass(0.0, 1000) == 0.0


def _board(sigma: float) -> Board:
    draw = np.random.default_rng(5)
    pods = tuple(
        Pod(f"d/{at:02}", f"{at}", (float(draw.uniform(1, 4)), 1.0), (0, 0), (5, 1), node=f"n{at % 3}")
        for at in range(12)
    )
    nodes = (Node("n0", (40, 10)), Node("n1", (20, 10)), Node("n2", (30, 10)))
    case = open_case(Problem(("cpu", "memory"), pods, nodes, Options(headroom=0.9)))
    return Board(case, np.ones(3, dtype=bool), np.array([1.0, 0.5]), np.full((2, 12), sigma))


def test_predicted_changes_are_the_changes_of_the_objective() -> None:
    board = _board(0.1)
    every = np.arange(3)[None, :]
    for pod in range(12):
        told = board.changes(np.array([pod]), every)[0]
        home, before = int(board.at[pod]), board.value()
        for node in {0, 1, 2} - {home}:
            board.put(pod, node)
            assert board.value() - before == pytest.approx(told[node], abs=1e-12)
            board.put(pod, home)
    told = board.swap_changes(np.array([0, 3]), np.array([1, 2, 4]))
    before = board.value()
    board.put(3, 1)
    board.put(4, 0)
    assert board.value() - before == pytest.approx(told[1, 2], abs=1e-12)


def test_the_standard_error_is_that_of_many_samples() -> None:
    """The spread of the predicted change when the usage of every pod is drawn anew."""
    sigma, draw = 0.02, np.random.default_rng(11)
    board = _board(sigma)
    told, told_swap = float(move_errors(board, np.array([3]), np.array([1]))[0]), swap_error(board, 3, 1)
    amount, load = board.amount, board.load
    board.ledger.load[:] = 0.0
    moves, swaps = [], []
    for _ in range(2000):
        noise = draw.normal(0, sigma, amount.shape)
        by_node = np.stack([noise[:, board.at == node].sum(axis=1) for node in range(3)], axis=1)
        board.amount, board.load = amount + noise, load + by_node * board.per
        moves.append(board.changes(np.array([3]), np.array([[1]]))[0, 0])
        swaps.append(board.swap_changes(np.array([3]), np.array([1]))[0, 0])
    assert np.std(moves) == pytest.approx(told, rel=0.1)
    assert np.std(swaps) == pytest.approx(told_swap, rel=0.1)
