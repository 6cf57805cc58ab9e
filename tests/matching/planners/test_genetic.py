"""GENETIC: the check dictionary, the fitness, the search, and the shape of the paper's figures."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from loadtests.small_clusters import METRICS, constrained, convergence, random_pod, weighted_use
from matching.parameters import ParameterError
from matching.plan import Plan
from matching.planners.genetic import GeneticPlanner
from matching.planners.genetic.evolution import CheckDictionary, Repair, fitness
from matching.planners.genetic.planner import check_dictionary
from matching.planning.prepared import prepare
from matching.problem import Node, Pod, Preferred, Problem, Requirement, Rules, Term

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
    Repair(CheckDictionary(forbidden, affine)).mend(population, np.random.default_rng(1))
    assert population[0].tolist() == _matrix("100", "010", "001", "010", "001", "100", "100")


def test_repair_draws_among_affine_nodes_else_among_all_that_are_allowed() -> None:
    forbidden = np.array([[True, False, False, False], [True, False, False, True], [True, True, True, True]])
    affine = np.array([[True, True, True, False], [False, False, False, False], [True, False, False, False]])
    population = np.zeros((400, 3), dtype=np.int64)
    Repair(CheckDictionary(forbidden, affine)).mend(population, np.random.default_rng(1))
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
    prepared = prepare(Problem(("cpu",), pods, nodes))
    dictionary = check_dictionary(prepared, np.array([1, 2, 0]))
    assert dictionary.forbidden.tolist() == [[False, True, False], [False] * 3, [False, False, True]]
    assert dictionary.affine.tolist() == [[True, False, True], [False, True, True], [True, True, False]]


def test_a_node_that_is_too_small_for_a_pod_is_forbidden_to_it() -> None:
    """The paper's example: a pod that asks for 8 GB on a node of 4."""
    nodes = (Node("large", (4.0, 16.0)), Node("small", (4.0, 4.0)))
    use, large, small = (0.1, 1.0), (0.1, 8.0), (0.1, 1.0)
    pods = (
        Pod("d/pending", "1", use, large, use),
        Pod("d/little", "2", use, small, use, node="large"),
        Pod("d/there", "3", use, large, use, node="small"),
    )
    dictionary = check_dictionary(prepare(Problem(("cpu", "memory"), pods, nodes)), np.array([1, 0, 2]))
    assert dictionary.forbidden.tolist() == [[False, True], [False, False], [False, False]], "it may stay where it is"


def test_fitness_is_never_below_zero() -> None:
    assert fitness(np.array([0.0, 0.4, 2.0]), 1.0).tolist() == [1.0, 0.6, 0.0]


def test_a_smaller_weight_on_the_strong_node_moves_load_there() -> None:
    """The paper's experiment: 0.5 on the strong node, 1 on the weak ones, for all four metrics."""
    even, weighted = weighted_use(1.0), weighted_use(0.5)
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
        GeneticPlanner(node_weights={"strong": dict.fromkeys(METRICS, 0.5)}).plan(problem)


def test_the_dictionary_needs_fewer_generations() -> None:
    """The paper: 110 where the plain algorithm needs 190."""
    curves = convergence(seeds=4)
    for costs in (curves.plain, curves.checked):
        assert (np.diff(costs) <= 0).all(), "the best so far never gets worse"
    plain, checked = curves.needed
    assert checked < 0.58 * plain


def test_the_plan_is_permitted_with_and_without_the_dictionary() -> None:
    for dictionary in (True, False):
        plan = GeneticPlanner(generations=20, dictionary=dictionary).plan(constrained(1))
        assert plan.certificate.feasible
        assert len(plan.moves) + len(plan.unplaced) == 50


def test_seeds_give_their_own_answer_every_time() -> None:
    problem = constrained(2)
    plans = [GeneticPlanner(seed=seed, generations=10).plan(problem) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


def test_elites_and_the_constant_are_optional() -> None:
    problem = constrained(2)
    for planner in (GeneticPlanner(elites=0, generations=10), GeneticPlanner(c_max=0.0, generations=10)):
        assert planner.plan(problem).certificate.feasible


def test_a_cluster_of_the_issue_s_size_ends_more_even() -> None:
    """200 pods x 20 nodes, 200 generations x 100 individuals; `make bench` takes the time of it."""
    pick = Random(1)
    nodes = tuple(Node(f"n{at:02d}", (32.0,) * 4) for at in range(20))
    pods = tuple(random_pod(at, pick, f"n{int(20 * pick.random() ** 2):02d}") for at in range(200))
    plan = GeneticPlanner().plan(Problem(METRICS, pods, nodes))
    assert plan.after.spread < plan.before.spread
