"""GENETIC: the check dictionary, the fitness, the search, and the shape of the paper's figures."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from matching.case import open_case
from matching.parameters import ParameterError
from matching.plan import Plan
from matching.planners.genetic import GeneticPlanner
from matching.planners.genetic.dictionary import Dictionary, Repair
from matching.planners.genetic.fitness import fitness
from matching.planners.genetic.planner import check_dictionary
from matching.planners.node_loads import shares_of_room
from matching.problem import Node, Options, Pod, Preferred, Problem, Requirement, Rules, Term

ANYWHERE = Rules()
METRICS = ("cpu", "memory", "disk", "network")
Ends = Callable[[Plan], dict[str, str | None]]


def _matrix(*rows: str) -> list[int]:
    """The paper's chromosome, a row of bits per pod, as the index of the node of each pod."""
    return [row.index("1") for row in rows]


def test_the_paper_s_repair_example() -> None:
    """Pods 4 and 5 are forbidden where they are; 3 and 6 are not affine to their nodes and stay all the same."""
    forbidden, affine = np.zeros((7, 3), dtype=bool), np.zeros((7, 3), dtype=bool)
    forbidden[3, 0] = forbidden[4, 1] = True
    for pod, nodes in enumerate([[0], [1], [0, 1], [1], [2], [1, 2], [0]]):
        affine[pod, nodes] = True
    population = np.array([_matrix("100", "010", "001", "100", "010", "100", "100")])
    Repair(Dictionary(forbidden, affine)).mend(population, np.random.default_rng(1))
    assert population[0].tolist() == _matrix("100", "010", "001", "010", "001", "100", "100")


def test_repair_draws_among_affine_nodes_else_among_all_that_are_allowed() -> None:
    forbidden = np.array([[True, False, False, False], [True, False, False, True], [True, True, True, True]])
    affine = np.array([[True, True, True, False], [False, False, False, False], [True, False, False, False]])
    population = np.zeros((400, 3), dtype=np.int64)
    Repair(Dictionary(forbidden, affine)).mend(population, np.random.default_rng(1))
    assert set(population[:, 0]) == {1, 2}
    assert set(population[:, 1]) == {1, 2}
    assert set(population[:, 2]) == {0}, "forbidden everywhere: keeps what it has"


def test_the_dictionary_is_built_from_what_pods_may_and_what_they_wish() -> None:
    fast = Term((Requirement("disk", "In", ("ssd",)),))
    pods = (
        Pod("d/picky", "1", (1.0,), (1.0,), (1.0,), rules=Rules(node_selector=(("zone", "a"),))),
        Pod("d/wishing", "2", (1.0,), (1.0,), (1.0,), rules=Rules(preferred=Preferred(nodes=((1, fast),)))),
        Pod("d/large", "3", (5.0,), (5.0,), (5.0,)),
    )
    nodes = (
        Node("n1", (9.0,), labels={"zone": "a"}),
        Node("n2", (9.0,), labels={"disk": "ssd"}),
        Node("n3", (4.0,), labels={"zone": "a", "disk": "ssd"}),
    )
    case = open_case(Problem(("cpu",), pods, nodes))
    dictionary = check_dictionary(case, np.array([1, 2, 0]))
    assert dictionary.forbidden.tolist() == [[False, True, False], [False] * 3, [False] * 3]
    assert dictionary.affine.tolist() == [[True, False, True], [False, True, True], [True, True, False]]


def test_fitness_is_never_below_zero() -> None:
    assert fitness(np.array([0.0, 0.4, 2.0]), 1.0).tolist() == [1.0, 0.6, 0.0]


def _pod(at: int, pick: Random, node: str | None, rules: Rules = ANYWHERE) -> Pod:
    need = tuple(pick.uniform(0.2, 2.0) for _ in METRICS)
    return Pod(f"d/p{at:03d}", f"{at}", need, tuple(amount / 4 for amount in need), need, node=node, rules=rules)


def _weighing(strong: float) -> dict[str, dict[str, float]]:
    return {"strong": dict.fromkeys(METRICS, strong)}


def test_a_smaller_weight_on_the_strong_node_moves_load_there(ends: Ends) -> None:
    """The paper's experiment: 0.5 on the strong node, 1 on the weak ones, for all four metrics."""
    pick = Random(3)
    nodes = (Node("strong", (32.0,) * 4), Node("weak1", (24.0,) * 4), Node("weak2", (24.0,) * 4))
    pods = tuple(_pod(at, pick, pick.choice(["strong", "weak1", "weak2"])) for at in range(36))
    problem = Problem(METRICS, pods, nodes, Options(headroom=0.0))

    def use(planner: GeneticPlanner) -> dict[str, list[float]]:
        where = ends(planner.plan(problem))
        return {
            node.name: [
                sum(pod.usage[axis] for pod in pods if where[pod.key] == node.name) / node.allocatable[axis]
                for axis in range(4)
            ]
            for node in nodes
        }

    even, weighted = use(GeneticPlanner()), use(GeneticPlanner(node_weights=_weighing(0.5)))
    for axis in range(4):
        assert weighted["strong"][axis] > 1.1 * even["strong"][axis]
        for weak in ("weak1", "weak2"):
            assert weighted[weak][axis] < even[weak][axis] + 0.02
            assert weighted["strong"][axis] > 1.3 * weighted[weak][axis]


def test_weight_zero_drops_a_metric(ends: Ends) -> None:
    """Two pods that are heavy on disk and two on CPU: only the metric that counts is spread."""
    shapes = [(8.0, 1.0), (8.0, 1.0), (1.0, 8.0), (1.0, 8.0)]
    pods = tuple(Pod(f"d/p{at}", f"{at}", need, (0.0, 0.0), need, node="a") for at, need in enumerate(shapes))
    problem = Problem(("cpu", "disk"), pods, (Node("a", (20.0, 20.0)), Node("b", (20.0, 20.0))))
    where = ends(GeneticPlanner(weights={"cpu": 1.0, "disk": 0.0}).plan(problem))
    assert where["d/p0"] != where["d/p1"]
    where = ends(GeneticPlanner(weights={"disk": 1.0}).plan(problem))
    assert where["d/p2"] != where["d/p3"]


def test_a_node_that_is_not_there_is_named() -> None:
    problem = Problem(METRICS, (), (Node("a", (1.0,) * 4),))
    with pytest.raises(ParameterError, match=r"nodeWeights.strong.*no such node"):
        GeneticPlanner(node_weights=_weighing(0.5)).plan(problem)


def _constrained(seed: int) -> Problem:
    """Most pods ask for one of four labels that half of the nodes have."""
    pick = Random(seed)
    labels = [{f"l{at}": "y" for at in range(4) if pick.random() < 0.5} for _ in range(10)]
    nodes = tuple(Node(f"n{at}", (16.0,) * 4, labels=each) for at, each in enumerate(labels))
    rules = [Rules(node_selector=((f"l{at}", "y"),)) for at in range(4)] + [Rules()]
    return Problem(METRICS, tuple(_pod(at, pick, None, pick.choice(rules)) for at in range(50)), nodes)


def _generations_to(cost: float, seed: int, *, dictionary: bool) -> int:
    case = open_case(_constrained(seed))
    loads = shares_of_room(case, dict.fromkeys(METRICS, 1.0))
    found = GeneticPlanner(seed=seed, generations=150, dictionary=dictionary).evolve(case, loads).cost
    assert (np.diff(found) <= 0).all(), "the best so far never gets worse"
    return int(np.argmax(found <= cost)) if (found <= cost).any() else 150


def test_the_dictionary_needs_fewer_generations() -> None:
    """The paper: 110 where the plain algorithm needs 190."""
    plain = [_generations_to(0.1, seed, dictionary=False) for seed in range(4)]
    checked = [_generations_to(0.1, seed, dictionary=True) for seed in range(4)]
    assert sum(checked) < 0.58 * sum(plain)


def test_the_plan_is_permitted_with_and_without_the_dictionary() -> None:
    for dictionary in (True, False):
        plan = GeneticPlanner(generations=20, dictionary=dictionary).plan(_constrained(1))
        assert plan.certificate.feasible
        assert len(plan.moves) + len(plan.unplaced) == 50


def test_seeds_give_their_own_answer_every_time() -> None:
    problem = _constrained(2)
    plans = [GeneticPlanner(seed=seed, generations=10).plan(problem) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


def test_elites_and_the_constant_are_optional() -> None:
    problem = _constrained(2)
    for planner in (GeneticPlanner(elites=0, generations=10), GeneticPlanner(c_max=0.0, generations=10)):
        assert planner.plan(problem).certificate.feasible


def test_a_cluster_of_the_issue_s_size_is_quick() -> None:
    """200 pods x 20 nodes, 200 generations x 100 individuals; the bar of 2 s is measured by `make bench`."""
    pick = Random(1)
    nodes = tuple(Node(f"n{at:02d}", (32.0,) * 4) for at in range(20))
    pods = tuple(_pod(at, pick, f"n{int(20 * pick.random() ** 2):02d}") for at in range(200))
    begin = time.perf_counter()
    plan = GeneticPlanner().plan(Problem(METRICS, pods, nodes))
    assert time.perf_counter() - begin < 20
    assert plan.after.spread < plan.before.spread
