"""LATENCY: the published rule, ours, one step as a plan, and the thesis' three tests played through."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.parameters import ParameterError
from matching.plan import Plan, Planner
from matching.planners.latency import (
    LatencyPlanner,
    LatencyPublishedPlanner,
    after_moves,
    current_round,
    with_measurement,
)
from matching.problem import Latency, LatencyMeasurement, Node, Options, Pod, Problem, Role, Rules

ROLES = {"d/t1": Role.TARGET, "d/t2": Role.TARGET, "d/probe": Role.PROBE}
WORKERS = {f"w{at}": at / 10 for at in range(1, 9)}


def _pod(key: str, node: str | None, **more: object) -> Pod:
    need = (0.1, 0.1)
    return Pod(key, key, need, need, need, node=node, **more)  # type: ignore[arg-type]


def _problem(
    where: Mapping[str, str | None], latency: Latency, nodes: Iterable[str] = WORKERS, **options: object
) -> Problem:
    return Problem(
        ("cpu", "memory"),
        tuple(_pod(key, node) for key, node in where.items()),
        tuple(Node(name, (4.0, 4.0)) for name in nodes),
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
    plan = LatencyPublishedPlanner().plan(_problem(where, _measured(where)))
    assert _moves(plan) == {"d/t2": "w7", "d/probe": "w1"}
    why = {move.pod: move.reasons for move in plan.moves}
    assert why["d/t2"] == ("the farthest, at 800 ms; d/probe measured 700 ms on w7", "w7: measured at 700 ms")
    assert why["d/probe"] == ("gives way to d/t2", "w1 is to be measured next")
    assert {stay.reason for stay in plan.stays} == {"in this step another pod goes"}


def test_the_farthest_probe_tries_a_node_that_nobody_has_visited() -> None:
    where = {"d/t1": "w1", "d/t2": "w3", "d/probe": "w5"}
    plan = LatencyPublishedPlanner().plan(_problem(where, _measured(where, visited=frozenset({"w2", "w4"}))))
    assert _moves(plan) == {"d/probe": "w6"}


def test_stable_when_there_is_nothing_left_to_try() -> None:
    where = {"d/t1": "w1", "d/t2": "w2", "d/probe": "w3"}
    plan = LatencyPublishedPlanner().plan(_problem(where, _measured(where, visited=frozenset(WORKERS))))
    assert plan.moves == ()
    assert plan.notes[0].startswith("stable: ")


def test_a_target_never_goes_to_an_unknown_node() -> None:
    """The probe stands beside a target, so that nobody has found a better node."""
    where = {"d/t1": "w6", "d/t2": "w8", "d/probe": "w6"}
    plan = LatencyPublishedPlanner().plan(_problem(where, _measured(where)))
    assert plan.moves == ()
    assert "no probe has found a nearer node that takes d/t2" in plan.notes[0]


def test_waits_for_enough_measurements_and_minds_the_oldest_on_a_tie() -> None:
    where = {"d/t1": "w5", "d/t2": "w6", "d/probe": "w7"}
    latency = _measured(where)
    few = replace(latency, last={key: latency.last[key] for key in ("d/t1", "d/t2")})
    assert LatencyPublishedPlanner().plan(_problem(where, few)).notes[0] == "2 of 3 measurements are there"
    even = {
        "d/t1": LatencyMeasurement(0.9, 5.0),
        "d/t2": LatencyMeasurement(0.9, 2.0),
        "d/probe": LatencyMeasurement(0.1, 1.0),
    }
    plan = LatencyPublishedPlanner().plan(_problem(where, replace(latency, last=even)))
    assert _moves(plan)["d/t2"] == "w7"


def test_more_measurements_than_targets_are_needed() -> None:
    where = {"d/t1": "w5", "d/t2": "w6", "d/probe": "w7"}
    with pytest.raises(ParameterError, match=r"measurements.*exceed the number of targets, 2"):
        LatencyPublishedPlanner(measurements=2).plan(_problem(where, _measured(where)))


def test_with_nowhere_new_to_go_the_probe_takes_the_target_s_place() -> None:
    where = {"d/t1": "w1", "d/t2": "w8", "d/probe": "w2"}
    plan = LatencyPublishedPlanner().plan(_problem(where, _measured(where, visited=frozenset(WORKERS))))
    assert _moves(plan) == {"d/t2": "w2", "d/probe": "w8"}


def test_a_budget_of_one_move_is_the_target_s() -> None:
    where = {"d/t1": "w6", "d/t2": "w8", "d/probe": "w7"}
    assert _moves(LatencyPublishedPlanner().plan(_problem(where, _measured(where), max_moves=1))) == {"d/t2": "w7"}
    none = LatencyPublishedPlanner().plan(_problem(where, _measured(where), max_moves=0))
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
    plan = LatencyPublishedPlanner().plan(replace(problem, nodes=nodes, pods=pods))
    assert _moves(plan) == {"d/t2": "w7", "d/probe": "w2"}
    assert plan.certificate.feasible


def test_pods_without_a_node_and_pods_without_a_role() -> None:
    where: dict[str, str | None] = {"d/t1": "w6", "d/t2": None, "d/probe": None, "d/other": None, "d/rest": "w1"}
    latency = replace(_measured({"d/t1": "w6"}), visited=frozenset({"w1", "w2", "w3"}))
    plan = LatencyPublishedPlanner().plan(_problem(where, latency))
    placed = _moves(plan)
    assert placed["d/probe"] in {"w4", "w5", "w7", "w8"}
    assert placed.keys() == {"d/t2", "d/probe", "d/other"}
    assert {stay.pod: stay.reason for stay in plan.stays}["d/rest"] == "neither a target nor a probe"


def test_a_pending_target_goes_to_a_probe_that_stands_alone() -> None:
    where: dict[str, str | None] = {"d/t1": "w6", "d/t2": None, "d/probe": "w4"}
    plan = LatencyPublishedPlanner().plan(_problem(where, _measured({"d/t1": "w6", "d/probe": "w4"})))
    assert _moves(plan)["d/t2"] == "w4"


def test_what_a_round_knows() -> None:
    latency = with_measurement(Latency(0.0, 0.0, ROLES), "d/t1", "w3", 0.3, 5.0)
    latency = with_measurement(latency, "d/t1", "w3", 0.1, 4.0)
    assert latency.last["d/t1"] == LatencyMeasurement(0.3, 5.0)
    latency = with_measurement(latency, "d/t2", "w2", 0.2, 6.0)
    moved = after_moves(latency, {"d/t1": ("w3", "w1"), "d/probe": ("w1", "w4")}, 7.0)
    assert moved.last.keys() == {"d/t2"}
    assert moved.visited == {"w1", "w3", "w4"}
    assert moved.left == {"w3"}
    assert moved.known == {"w3": 0.3, "w2": 0.2}
    assert current_round(replace(moved, now=36.0), 30.0) == replace(moved, now=36.0)
    fresh = current_round(replace(moved, now=37.0), 30.0)
    assert (fresh.visited, fresh.known, fresh.left) == (frozenset(), {}, frozenset())


class Edge:
    """Workers at given delays, a meter that measures every second, and the planner's steps carried out at once."""

    def __init__(self, planner: Planner, where: dict[str, str], rtts: Mapping[str, float] = WORKERS) -> None:
        self.planner = planner
        self.rtts = dict(rtts)
        self.where = where
        roles = {pod: Role.PROBE if "probe" in pod else Role.TARGET for pod in where}
        self.latency = Latency(0.0, 0.0, roles, {}, frozenset(where.values()))
        self.travels: list[tuple[str, float, float]] = []
        self.steps: list[dict[str, str]] = []

    def live(self, seconds: int) -> None:
        for _ in range(seconds):
            now = self.latency.now + 1
            for pod, node in self.where.items():
                self.latency = with_measurement(self.latency, pod, node, self.rtts[node], now)
            plan = self.planner.plan(_problem(self.where, self.latency, nodes=self.rtts))
            assert plan.certificate.feasible
            self._carry_out(_moves(plan), now)

    def round(self) -> None:
        """Until nothing moves any more, less than the quiet time."""
        while len(self.steps) < 100:
            before = len(self.steps)
            self.live(1)
            if len(self.steps) == before:
                return

    def _carry_out(self, moves: dict[str, str], now: float) -> None:
        done = {pod: (self.where[pod], node) for pod, node in moves.items()}
        self.travels += [(pod, self.rtts[before], self.rtts[after]) for pod, (before, after) in done.items()]
        self.where |= moves
        if moves:
            self.steps.append(moves)
            self.latency = after_moves(current_round(self.latency, 30.0), done, now)

    @property
    def targets(self) -> set[str]:
        return {node for pod, node in self.where.items() if "probe" not in pod}

    @property
    def target_travels(self) -> list[tuple[float, float]]:
        return [(before, after) for pod, before, after in self.travels if "probe" not in pod]


PLANNERS = (LatencyPlanner(), LatencyPublishedPlanner())
STARTS = (("w6", "w8", "w7"), ("w2", "w6", "w5"), ("w4", "w8", "w6"))


@pytest.mark.parametrize("planner", PLANNERS, ids=lambda planner: planner.name)
@pytest.mark.parametrize("start", STARTS)
def test_the_optimum_is_reached_without_a_target_ever_going_farther(
    start: tuple[str, str, str], planner: Planner
) -> None:
    edge = Edge(planner, dict(zip(ROLES, start, strict=True)))
    edge.live(40)
    assert edge.targets == {"w1", "w2"}
    assert all(after < before for before, after in edge.target_travels)
    edge.live(60)
    assert edge.targets == {"w1", "w2"}


@pytest.mark.parametrize("planner", PLANNERS, ids=lambda planner: planner.name)
def test_the_placement_follows_a_node_that_becomes_nearer(planner: Planner) -> None:
    edge = Edge(planner, {"d/t1": "w4", "d/t2": "w8", "d/probe": "w6"})
    edge.live(40)
    assert edge.targets == {"w1", "w2"}
    edge.rtts["w8"] = 0.05
    edge.live(60)
    assert edge.targets == {"w1", "w8"}
    assert all(after < before for before, after in edge.target_travels)


@pytest.mark.parametrize("start", STARTS)
def test_in_any_order_of_nodes_a_round_takes_at_most_six_steps_and_each_target_moves_once(
    start: tuple[str, str, str],
) -> None:
    """The thesis' tests. The published rule takes up to six target moves in the first."""
    most = len(set(start[:2]) - {"w1", "w2"})
    free = [name for name in WORKERS if name not in start]
    for order in itertools.permutations(free):
        names = {name: WORKERS[name] for name in (*start, *order)}
        edge = Edge(LatencyPlanner(), dict(zip(ROLES, start, strict=True)), names)
        edge.round()
        assert edge.targets == {"w1", "w2"}
        assert len(edge.steps) <= 6
        assert len(edge.target_travels) <= most


@given(
    st.lists(st.integers(1, 10_000), min_size=4, max_size=12, unique=True),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
@settings(max_examples=100, deadline=None)
def test_a_round_ends_at_the_optimum_one_step_after_the_last_trial(
    milliseconds: list[int], targets: int, random: Random
) -> None:
    nodes = {f"n{at}": rtt / 1000 for at, rtt in enumerate(milliseconds)}
    pods = [*(f"d/t{at}" for at in range(targets)), "d/probe"]
    where = dict(zip(pods, random.sample(sorted(nodes), len(pods)), strict=False))
    if len(where) < len(pods):
        return
    edge = Edge(LatencyPlanner(measurements=targets + 1, gain=0.0, at_once=0.0), where, nodes)
    edge.round()
    nearest = sorted(nodes.values())[:targets]
    assert sorted(nodes[node] for node in edge.targets) == nearest
    assert len(edge.steps) <= len(nodes) - len(pods) + 1
    assert len(edge.target_travels) <= targets
    assert all(after in nearest for _, after in edge.target_travels)


def test_a_target_waits_while_a_nearer_node_may_be_found_unless_the_known_one_is_much_nearer() -> None:
    where = {"d/t1": "w6", "d/t2": "w8", "d/probe": "w7"}
    plan = LatencyPlanner().plan(_problem(where, _measured(where)))
    assert _moves(plan) == {"d/probe": "w1"}
    known = _measured(where, known={"w3": 0.2, "w2": 0.5}, visited=frozenset({"w2", "w3"}))
    assert _moves(LatencyPlanner().plan(_problem(where, known))) == {"d/t2": "w3", "d/probe": "w1"}
    assert _moves(LatencyPlanner(at_once=0.1).plan(_problem(where, known))) == {"d/probe": "w1"}


def test_a_target_goes_to_a_node_that_its_probe_has_left_and_none_goes_back_where_one_was() -> None:
    where = {"d/t1": "w1", "d/t2": "w8", "d/probe": "w7"}
    known = _measured(where, known={"w2": 0.2, "w3": 0.3, "gone": 0.1}, visited=frozenset(WORKERS))
    plan = LatencyPlanner().plan(_problem(where, known))
    assert _moves(plan) == {"d/t2": "w2"}
    assert plan.moves[0].reasons == ("the farthest, at 800 ms; w2 was measured at 200 ms", "w2: measured at 200 ms")
    left = LatencyPlanner().plan(_problem(where, replace(known, left=frozenset({"w2"}))))
    assert _moves(left) == {"d/t2": "w3"}


def test_what_a_target_would_save_has_to_be_worth_a_move() -> None:
    where = {"d/t1": "w1", "d/t2": "w3", "d/probe": "w7"}
    known = _measured(where, known={"w2": 0.29}, visited=frozenset(WORKERS))
    plan = LatencyPlanner().plan(_problem(where, known))
    assert not plan.moves
    assert plan.notes[0].startswith("stable: ")
    assert _moves(LatencyPlanner(gain=0.01).plan(_problem(where, known))) == {"d/t2": "w2"}


def test_the_probe_makes_way_where_the_node_takes_one_pod_only() -> None:
    where = {"d/t1": "w1", "d/t2": "w8", "d/probe": "w2"}
    problem = _problem(where, _measured(where, visited=frozenset(WORKERS) - {"w3"}))
    nodes = tuple(replace(node, max_pods=1) for node in problem.nodes)
    assert _moves(LatencyPlanner().plan(replace(problem, nodes=nodes))) == {"d/t2": "w2", "d/probe": "w3"}


def test_parameters_that_make_no_sense_are_refused() -> None:
    for wrong in ({"gain": 1.0}, {"at_once": -0.1}, {"quiet": -1.0}, {"measurements": 0}):
        with pytest.raises(ParameterError, match=r"must be at least"):
            LatencyPlanner(**wrong)


def by_the_book(start: Mapping[str, str], rtts: Mapping[str, float]) -> list[dict[str, str]]:
    """LATENCY's rule, written down a second time from its text: which pods go where, step by step."""
    where, seen = dict(start), set(start.values())
    log: list[dict[str, str]] = []
    while True:
        worst = max(where, key=lambda pod: rtts[where[pod]])
        unseen = [node for node in rtts if node not in seen]
        if "probe" in worst:
            if not unseen:
                return log
            log.append({worst: unseen[0]})
        else:
            probe = where["d/probe"]
            if rtts[probe] >= rtts[where[worst]]:
                return log
            onward = (unseen or [where[worst]])[0]
            log.append({worst: probe, "d/probe": onward})
        where |= log[-1]
        seen |= set(where.values())


def test_the_published_rule_does_what_its_text_says_in_300_replays() -> None:
    for seed in range(300):
        random = Random(seed)
        count = random.randint(4, 10)
        nodes = {f"n{at}": rtt / 1000 for at, rtt in enumerate(random.sample(range(1, 1000), count))}
        pods = [*(f"d/t{at}" for at in range(random.randint(1, 3))), "d/probe"]
        start = dict(zip(pods, random.sample(sorted(nodes), len(pods)), strict=True))
        edge = Edge(LatencyPublishedPlanner(measurements=len(pods)), dict(start), nodes)
        edge.round()
        assert edge.steps == by_the_book(start, nodes)
