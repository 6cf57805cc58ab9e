"""`balance` knows when not to act: the noise of all nodes together, of one alone, and the price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.model.arrays import sum_by_node
from matching.plan import Plan
from matching.planners.balance import BalancePlanner
from matching.planners.balance.noise import chi_squared, expect, lasting_parts
from matching.planners.balance.state import BalanceState
from matching.planning.prepared import prepare
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


def test_what_noise_may_explain_is_the_chi_squared_of_the_tables() -> None:
    told = [chi_squared(0.95, freedom) for freedom in (3, 19, 999)]
    assert told == [pytest.approx(7.81, abs=0.05), pytest.approx(30.14, abs=0.02), pytest.approx(1073.6, abs=0.1)]
    assert chi_squared(0.5, 19) == pytest.approx(18.34, abs=0.01)
    assert chi_squared(0.0, 19) == chi_squared(0.95, 0) == 0.0


def test_small_differences_of_many_nodes_count_together() -> None:
    """None of them stands out alone; by chance they would not all be so large."""
    together = lasting_parts(np.array([1.8, -1.8] * 10), np.ones(20), 0.95)
    assert (together > 0.4).all()
    assert (lasting_parts(np.array([1.8, -1.8] + [0.1, -0.1] * 9), np.ones(20), 0.95) == 0).all()


def test_a_node_that_stands_out_says_nothing_about_the_others() -> None:
    away = np.array([20.0] + [1.0, -1.0] * 50)
    lasting = lasting_parts(away, np.ones(len(away)), 0.95)
    assert lasting[0] > 0.9
    assert (lasting[1:] == 0).all()


def test_what_is_known_exactly_lasts() -> None:
    lasting = lasting_parts(np.array([0.5, -0.5, 0.0]), np.array([0.0, 1.0, 0.0]), 0.95)
    assert lasting[0] == lasting[2] == 1.0
    assert lasting[1] < 0.5
    assert (lasting_parts(np.array([0.5, -0.5]), np.ones(2), 0.0) == 1).all()


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**31), confidence=st.sampled_from((0.0, 0.5, 0.95)))
def test_expected_loads_are_the_lasting_parts_of_the_measured_ones(seed: int, confidence: float) -> None:
    draw = np.random.default_rng(seed)
    pods = tuple(
        Pod(f"d/{at:02}", f"{at}", (float(draw.uniform(5, 9)),), (0,), (12,), node=f"n{draw.integers(4)}")
        for at in range(16)
    )
    arrays = prepare(Problem(("cpu",), pods, tuple(Node(f"n{at}", (90,)) for at in range(4)))).arrays
    sigma, everywhere = np.full((1, 16), 90 / 900), np.ones(4, dtype=bool)
    expected = expect(arrays, everywhere, sigma / 90, confidence)
    before, after = (sum_by_node(usage, arrays.current, 4)[0] for usage in (arrays.usage, expected.usage))
    variance = sum_by_node((sigma / 90) ** 2, arrays.current, 4)[0]
    lasting = lasting_parts(before - before.mean(), variance, confidence)
    assert after - before.mean() == pytest.approx(lasting * (before - before.mean()), abs=1e-12)
    assert expected.variance[0] == pytest.approx(lasting * variance)


def _board() -> BalanceState:
    draw = np.random.default_rng(5)
    pods = tuple(
        Pod(f"d/{at:02}", f"{at}", (float(draw.uniform(1, 4)), 1.0), (0, 0), (5, 1), node=f"n{at % 3}")
        for at in range(12)
    )
    nodes = (Node("n0", (40, 10)), Node("n1", (20, 10)), Node("n2", (30, 10)))
    prepared = prepare(Problem(("cpu", "memory"), pods, nodes, Options(headroom=0.9)))
    return BalanceState(prepared, np.ones(3, dtype=bool), np.array([1.0, 0.5]), prepared.arrays.usage, 4.0)


def test_predicted_changes_are_the_changes_of_the_objective() -> None:
    board = _board()
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
