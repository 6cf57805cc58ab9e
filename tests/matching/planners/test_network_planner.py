"""BNIP: the formula, its nine pods, and what becomes of what is not known."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from matching.network_score import score_nodes, variances
from matching.plan import Plan
from matching.planners.network import NetworkPlanner
from matching.problem import Node, Options, Pod, Problem, ProblemError

AXES = ("cpu", "memory", "network")
DEMANDS = {at: float(rate) for at, rate in enumerate([2, 2, 2, 5, 5, 5, 10, 10, 10], 1)}
BANDWIDTHS = {"node1": 50.0, "node2": 75.0, "node3": 125.0}
CORES = {"node1": 2.0, "node2": 4.0, "node3": 8.0}
Ends = Callable[[Plan], dict[str, str | None]]


def _pod(number: int, node: str | None = None, **more: object) -> Pod:
    use = (0.1, 160e6, DEMANDS[number])
    return Pod(f"d/pod{number}", f"{number}", use, (0.1, 160e6, 0.0), use, node=node, **more)  # type: ignore[arg-type]


def _nodes() -> tuple[Node, ...]:
    return tuple(Node(name, (CORES[name], 4e9, bandwidth)) for name, bandwidth in BANDWIDTHS.items())


def _variance(groups: Mapping[str, set[int]]) -> float:
    """Of the nominal use, in square percent."""
    use = [100 * sum(DEMANDS[pod] for pod in groups.get(node, ())) / width for node, width in BANDWIDTHS.items()]
    return float(np.var(use))


def _groups(where: Mapping[str, str | None]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for key, node in where.items():
        found.setdefault(str(node), set()).add(int(key.removeprefix("d/pod")))
    return found


REPLAY = {"node1": {3, 8}, "node2": {2, 5, 9}, "node3": {1, 4, 6, 7}}


def test_nine_pods_deployed_in_order_on_idle_nodes(ends: Ends) -> None:
    plan = NetworkPlanner().plan(Problem(AXES, tuple(_pod(number) for number in DEMANDS), _nodes()))
    assert _groups(ends(plan)) == REPLAY
    assert plan.moves[0].reasons[:2] == ("pending: it has no node", "node3 scores 10.0 of 10 among 3")
    assert [no.node for no in plan.moves[0].rejected] == ["node2", "node1"]


def test_the_variances_that_the_sources_list() -> None:
    default = {"node2": {8}, "node3": {1, 2, 3, 4, 5, 6, 7, 9}}
    paper = {"node1": {2, 6}, "node2": {3, 5, 8}, "node3": {1, 4, 7, 9}}
    best = min(
        _variance({node: {pod for pod, at in zip(DEMANDS, placed, strict=True) if at == node} for node in BANDWIDTHS})
        for placed in itertools.product(BANDWIDTHS, repeat=9)
    )
    found = [
        round(value, digits) for value, digits in zip(map(_variance, (default, paper, REPLAY)), (1, 1, 1), strict=True)
    ]
    assert [*found, round(best, 2)] == [181.4, 14.9, 7.6, 0.14]


def test_running_pods_move_only_where_it_pays(ends: Ends) -> None:
    """From the default scheduler's placement; then once more, with nothing left to do."""
    homes = dict.fromkeys(DEMANDS, "node3") | {8: "node2"}
    problem = Problem(AXES, tuple(_pod(number, node) for number, node in homes.items()), _nodes())
    plan = NetworkPlanner().plan(problem)
    where = _groups(ends(plan))
    assert _variance(where) < 20
    assert 0 < len(plan.moves) <= 5
    assert all("falls from" in move.reasons[0] for move in plan.moves)
    settled = {number: node for node, group in where.items() for number in group}
    again = NetworkPlanner().plan(
        Problem(AXES, tuple(_pod(number, node) for number, node in settled.items()), _nodes())
    )
    assert len(again.moves) <= 1
    assert NetworkPlanner(gain=1.0).plan(problem).moves == ()


def test_a_budget_takes_the_best_moves_first(ends: Ends) -> None:
    problem = Problem(AXES, tuple(_pod(number, "node3") for number in DEMANDS), _nodes(), Options(max_moves=2))
    plan = NetworkPlanner().plan(problem)
    assert len(plan.moves) == 2
    assert {DEMANDS[int(move.pod.removeprefix("d/pod"))] for move in plan.moves} == {10.0}


def test_what_is_not_known_cannot_be_judged(ends: Ends) -> None:
    riddle = Node("node9", (8.0, 4e9, 0.0), unknown=("network",))
    pods = (
        *(_pod(number, "node3") for number in (4, 5, 7)),
        _pod(8, "node3", unknown=("network",)),
        _pod(9, "node9"),
        _pod(1, None, unknown=("network",)),
    )
    plan = NetworkPlanner().plan(Problem(AXES, pods, (*_nodes(), riddle)))
    assert plan.certificate.feasible
    where = ends(plan)
    assert where["d/pod8"] == "node3"
    assert where["d/pod9"] == "node9", "nothing says how full its node is"
    assert "node9" not in {move.target for move in plan.moves if move.source}
    assert where["d/pod1"] is not None, "a pending pod is placed all the same"
    reasons = {stay.pod: stay.reason for stay in plan.stays}
    assert reasons["d/pod8"] == "fixed: unknown needs: network"
    assert "2 of 6 pods are left out: their network is neither stated nor measured" in plan.notes


def test_scores_run_from_0_to_10() -> None:
    rates, widths = np.array([10.0, 20.0, 0.0]), np.array([100.0, 100.0, 100.0])
    assert score_nodes(rates, widths, 10.0).round(3).tolist() == [5.0, 0.0, 10.0]
    assert score_nodes(np.zeros(3), widths, 5.0).tolist() == [10.0, 10.0, 10.0]
    only = score_nodes(rates, widths, 10.0, np.array([True, True, False]))
    assert only.tolist() == [10.0, 0.0, 0.0]
    assert score_nodes(rates, widths, 10.0, np.zeros(3, dtype=bool)).tolist() == [0.0, 0.0, 0.0]


def test_variance_is_that_of_the_paper_s_formula() -> None:
    pick = np.random.default_rng(5)
    for _ in range(50):
        use, added = pick.random(6), pick.random(6)
        for node, value in enumerate(variances(use, added)):
            mean = (use.sum() + added[node]) / 6
            inside = ((use - mean) ** 2).sum() - (use[node] - mean) ** 2 + (use[node] + added[node] - mean) ** 2
            assert value == pytest.approx(inside / 6, abs=1e-11)


def test_without_the_axis_it_says_so() -> None:
    with pytest.raises(ProblemError, match=r"no axis 'network'; its axes are cpu"):
        NetworkPlanner().plan(Problem(("cpu",), (), ()))
