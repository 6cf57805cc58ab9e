"""LATENCY: the rule on its own, one step as a plan, and the thesis' three tests played through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from matching.parameters import ParameterError
from matching.plan import Plan
from matching.planners.latency import LatencyPlanner, after_moves, current_round, with_measurement
from matching.problem import Latency, LatencyMeasurement, Node, Options, Pod, Problem, Role, Rules

ROLES = {"d/t1": Role.TARGET, "d/t2": Role.TARGET, "d/probe": Role.PROBE}
WORKERS = {f"w{at}": at / 10 for at in range(1, 9)}


def _pod(key: str, node: str | None, **more: object) -> Pod:
    need = (0.1, 0.1)
    return Pod(key, key, need, need, need, node=node, **more)  # type: ignore[arg-type]


def _problem(where: Mapping[str, str | None], latency: Latency, **options: object) -> Problem:
    return Problem(
        ("cpu", "memory"),
        tuple(_pod(key, node) for key, node in where.items()),
        tuple(Node(name, (4.0, 4.0)) for name in WORKERS),
        Options(**options),  # type: ignore[arg-type]
        latency=latency,
    )


def _measured(where: Mapping[str, str], rtts: Mapping[str, float] = WORKERS, **more: object) -> Latency:
    last = {key: LatencyMeasurement(rtts[node], 1.0) for key, node in where.items()}
    return Latency(1.0, 0.0, ROLES, last, **more)  # type: ignore[arg-type]


def _moves(plan: Plan) -> dict[str, str]:
    return {move.pod: move.target for move in plan.moves}


def test_the_farthest_target_goes_where_a_probe_has_been_and_the_probe_gives_way() -> None:
    where = {"d/t1": "w6", "d/t2": "w8", "d/probe": "w7"}
    plan = LatencyPlanner().plan(_problem(where, _measured(where)))
    assert _moves(plan) == {"d/t2": "w7", "d/probe": "w1"}
    why = {move.pod: move.reasons for move in plan.moves}
    assert why["d/t2"] == ("the farthest, at 800 ms; d/probe measured 700 ms on w7", "w7: measured at 700 ms")
    assert why["d/probe"] == ("gives way to d/t2", "w1 is to be measured next")
    assert {stay.reason for stay in plan.stays} == {"one pod goes at a time, and another one is farther"}


def test_the_farthest_probe_tries_a_node_that_nobody_has_visited() -> None:
    where = {"d/t1": "w1", "d/t2": "w3", "d/probe": "w5"}
    plan = LatencyPlanner().plan(_problem(where, _measured(where, visited=frozenset({"w2", "w4"}))))
    assert _moves(plan) == {"d/probe": "w6"}


def test_stable_when_there_is_nothing_left_to_try() -> None:
    where = {"d/t1": "w1", "d/t2": "w2", "d/probe": "w3"}
    plan = LatencyPlanner().plan(_problem(where, _measured(where, visited=frozenset(WORKERS))))
    assert plan.moves == ()
    assert plan.notes[0].startswith("stable: ")


def test_a_target_never_goes_to_an_unknown_node() -> None:
    """The probe stands beside a target, so that nobody has found a better node."""
    where = {"d/t1": "w6", "d/t2": "w8", "d/probe": "w6"}
    plan = LatencyPlanner().plan(_problem(where, _measured(where)))
    assert plan.moves == ()
    assert "no probe has found a nearer node that takes d/t2" in plan.notes[0]


def test_waits_for_enough_measurements_and_minds_the_oldest_on_a_tie() -> None:
    where = {"d/t1": "w5", "d/t2": "w6", "d/probe": "w7"}
    latency = _measured(where)
    few = replace(latency, last={key: latency.last[key] for key in ("d/t1", "d/t2")})
    assert LatencyPlanner().plan(_problem(where, few)).notes[0] == "2 of 3 measurements are there"
    even = {
        "d/t1": LatencyMeasurement(0.9, 5.0),
        "d/t2": LatencyMeasurement(0.9, 2.0),
        "d/probe": LatencyMeasurement(0.1, 1.0),
    }
    plan = LatencyPlanner().plan(_problem(where, replace(latency, last=even)))
    assert _moves(plan)["d/t2"] == "w7"


def test_more_measurements_than_targets_are_needed() -> None:
    where = {"d/t1": "w5", "d/t2": "w6", "d/probe": "w7"}
    with pytest.raises(ParameterError, match=r"measurements.*exceed the number of targets, 2"):
        LatencyPlanner(measurements=2).plan(_problem(where, _measured(where)))


def test_with_nowhere_new_to_go_the_probe_takes_the_target_s_place() -> None:
    where = {"d/t1": "w1", "d/t2": "w8", "d/probe": "w2"}
    plan = LatencyPlanner().plan(_problem(where, _measured(where, visited=frozenset(WORKERS))))
    assert _moves(plan) == {"d/t2": "w2", "d/probe": "w8"}


def test_a_budget_of_one_move_is_the_target_s() -> None:
    where = {"d/t1": "w6", "d/t2": "w8", "d/probe": "w7"}
    assert _moves(LatencyPlanner().plan(_problem(where, _measured(where), max_moves=1))) == {"d/t2": "w7"}
    none = LatencyPlanner().plan(_problem(where, _measured(where), max_moves=0))
    assert none.moves == ()
    assert none.notes[0] == "d/t2 stays for now: budget of 0 moves"


def test_rules_and_room_are_kept() -> None:
    """The probe's node has no room for the target beside it, but the probe gives way; w1 is not for probes."""
    where = {"d/t1": "w6", "d/t2": "w8", "d/probe": "w7"}
    problem = _problem(where, _measured(where))
    nodes = tuple(
        replace(node, max_pods=1 if node.name == "w7" else 110, labels={} if node.name == "w1" else {"probes": "y"})
        for node in problem.nodes
    )
    pods = tuple(
        replace(pod, rules=Rules(node_selector=(("probes", "y"),))) if "probe" in pod.key else pod
        for pod in problem.pods
    )
    plan = LatencyPlanner().plan(replace(problem, nodes=nodes, pods=pods))
    assert _moves(plan) == {"d/t2": "w7", "d/probe": "w2"}
    assert plan.certificate.feasible


def test_pods_without_a_node_and_pods_without_a_role() -> None:
    where: dict[str, str | None] = {"d/t1": "w6", "d/t2": None, "d/probe": None, "d/other": None, "d/rest": "w1"}
    latency = replace(_measured({"d/t1": "w6"}), visited=frozenset({"w1", "w2", "w3"}))
    plan = LatencyPlanner().plan(_problem(where, latency))
    placed = _moves(plan)
    assert placed["d/probe"] in {"w4", "w5", "w7", "w8"}
    assert placed.keys() == {"d/t2", "d/probe", "d/other"}
    assert {stay.pod: stay.reason for stay in plan.stays}["d/rest"] == "neither a target nor a probe"


def test_a_pending_target_goes_to_a_probe_that_stands_alone() -> None:
    where: dict[str, str | None] = {"d/t1": "w6", "d/t2": None, "d/probe": "w4"}
    plan = LatencyPlanner().plan(_problem(where, _measured({"d/t1": "w6", "d/probe": "w4"})))
    assert _moves(plan)["d/t2"] == "w4"


def test_the_book_of_measurements() -> None:
    latency = with_measurement(with_measurement(Latency(0.0, 0.0, ROLES), "d/t1", 0.3, 5.0), "d/t1", 0.1, 4.0)
    assert latency.last["d/t1"] == LatencyMeasurement(0.3, 5.0)
    gone = after_moves(with_measurement(latency, "d/t2", 0.2, 6.0), ["d/t1"], ["w1", "w2"], 7.0)
    assert gone.last.keys() == {"d/t2"}
    assert gone.visited == {"w1", "w2"}
    assert current_round(replace(gone, now=36.0), 30.0).visited == {"w1", "w2"}
    assert current_round(replace(gone, now=37.0), 30.0).visited == frozenset()


class Edge:
    """Workers at given delays, a meter that measures every second, and the planner's steps carried out at once."""

    def __init__(self, where: dict[str, str]) -> None:
        self.rtts = dict(WORKERS)
        self.where = where
        self.latency = Latency(0.0, 0.0, ROLES, {}, frozenset(where.values()))
        self.travels: list[tuple[str, float, float]] = []

    def live(self, seconds: int) -> None:
        for _ in range(seconds):
            now = self.latency.now + 1
            for pod, node in self.where.items():
                self.latency = with_measurement(self.latency, pod, self.rtts[node], now)
            plan = LatencyPlanner().plan(_problem(self.where, self.latency))
            assert plan.certificate.feasible
            self._carry_out(_moves(plan), now)

    def _carry_out(self, moves: dict[str, str], now: float) -> None:
        for pod, node in moves.items():
            self.travels.append((pod, self.rtts[self.where[pod]], self.rtts[node]))
            self.where[pod] = node
        if moves:
            self.latency = after_moves(current_round(self.latency, 30.0), moves, self.where.values(), now)

    @property
    def targets(self) -> set[str]:
        return {self.where["d/t1"], self.where["d/t2"]}

    @property
    def target_travels(self) -> list[tuple[float, float]]:
        return [(before, after) for pod, before, after in self.travels if pod != "d/probe"]


@pytest.mark.parametrize("start", [("w6", "w8", "w7"), ("w2", "w6", "w5"), ("w4", "w8", "w6")])
def test_the_optimum_is_reached_without_a_target_ever_going_farther(start: tuple[str, str, str]) -> None:
    edge = Edge(dict(zip(ROLES, start, strict=True)))
    edge.live(40)
    assert edge.targets == {"w1", "w2"}
    assert all(after < before for before, after in edge.target_travels)
    edge.live(60)
    assert edge.targets == {"w1", "w2"}


def test_the_placement_follows_a_node_that_becomes_nearer() -> None:
    edge = Edge({"d/t1": "w4", "d/t2": "w8", "d/probe": "w6"})
    edge.live(40)
    assert edge.targets == {"w1", "w2"}
    edge.rtts["w8"] = 0.05
    edge.live(60)
    assert edge.targets == {"w1", "w8"}
    assert all(after < before for before, after in edge.target_travels)
