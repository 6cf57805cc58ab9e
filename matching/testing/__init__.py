"""For authors of planners: check that a planner keeps its promises, in a test of any framework.

from matching.testing import check_planner

def test_my_planner():
    check_planner(MyPlanner)
"""

from __future__ import annotations

import copy
import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace

from matching.plan import Plan, Planner, Promise
from matching.problem import Node, Options, Pod, Problem, ProblemError, Scope
from matching.serialization import problem_to_json
from matching.testing.random_problems import (
    AXES,
    full_problem,
    problem_with_pod_rules,
    random_problem,
    small_problem,
    with_surges,
    with_volumes,
)
from matching.verify.feasibility import order_violations

__all__ = [
    "CHECKS",
    "check_planner",
    "ends_of",
    "full_problem",
    "problem_with_pod_rules",
    "random_problem",
    "small_problem",
    "with_surges",
    "with_volumes",
]

Ends = Mapping[str, str | None]
Objective = Callable[[Problem, Ends], float]
"""What the planner lowers, for a problem and the node of each pod by key."""


def check_planner(
    planner: Planner | type[Planner],
    *,
    objective: Objective | None = None,
    waives: Collection[Promise] | None = None,
    only: Collection[str] = (),
    seed: int = 0,
    problems: int = 25,
) -> None:
    """Raise AssertionError for the first promise that the planner breaks, with the problem as JSON.

    Read that with `matching.serialization.problem_from_json`. Each check gets `problems` random problems, from `seed`
    on. Promises in `waives` are not checked; by default what the planner waives. Without an `objective` nobody can say
    whether a plan is worse than doing nothing. `only`: some of `CHECKS`, by name.
    """
    made = planner() if isinstance(planner, type) else planner
    subject = _Subject(made, frozenset(made.waives if waives is None else waives), objective)
    for name in only or CHECKS:
        check = CHECKS[name]
        if check.promise in subject.waives:
            continue
        for number in range(seed, seed + (problems if check.random else 1)):
            check.run(subject, check.problem(number))


def _any_problem(seed: int) -> Problem:
    size = random.Random(seed)
    return random_problem(seed, size.randint(0, 8), size.randint(1, 4))


def ends_of(plan: Plan) -> dict[str, str | None]:
    """The node that each pod of a plan ends on."""
    ends: dict[str, str | None] = {each.pod: None for each in plan.unplaced}
    ends.update({each.pod: each.node for each in plan.stays})
    ends.update({each.pod: each.target for each in plan.moves})
    return ends


@dataclass(frozen=True, slots=True)
class _Subject:
    planner: Planner
    waives: frozenset[Promise]
    objective: Objective | None

    def plan(self, problem: Problem) -> Plan:
        try:
            return self.planner.plan(problem)
        except Exception as error:
            self.require(False, f"plans without an error, not {error!r}", problem)
            raise

    def require(self, kept: bool, promise: str, problem: Problem | None = None) -> None:
        if not kept:
            example = "" if problem is None else f"\nproblem: {problem_to_json(problem).decode()}"
            raise AssertionError(f"planner {self.planner.name!r} does not keep its promise: {promise}{example}")


@dataclass(frozen=True, slots=True)
class Check:
    run: Callable[[_Subject, Problem], None]
    promise: Promise | None = None
    """The planner is let off the check if it waives this."""
    random: bool = True
    """False: the check has its own problems and is run once."""
    problem: Callable[[int], Problem] = _any_problem
    """From a seed."""


def _says_what_it_is(subject: _Subject, _: Problem) -> None:
    planner = subject.planner
    subject.require(isinstance(planner.name, str) and bool(planner.name), "has a name")
    subject.require(planner.waives <= set(Promise), "waives promises")
    try:
        planner.anything = 1  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        return
    subject.require(False, "is frozen")


def _feasible(subject: _Subject, problem: Problem) -> None:
    if Promise.BUDGETS in subject.waives:
        unlimited = {each.name: None for each in fields(Options) if each.name.startswith("max_moves")}
        problem = replace(problem, options=replace(problem.options, **unlimited))  # type: ignore[arg-type]
    plan = subject.plan(problem)
    subject.require(plan.planner == subject.planner.name, "names itself in the plan", problem)
    violations = plan.certificate.violations
    subject.require(violations == (), f"plans are feasible, without {'; '.join(violations)}", problem)
    named = [each.pod for part in (plan.moves, plan.stays, plan.unplaced) for each in part]
    subject.require(sorted(named) == sorted(pod.key for pod in problem.pods), "names every pod once", problem)


def _deterministic(subject: _Subject, problem: Problem) -> None:
    first = subject.plan(problem)
    subject.require(subject.plan(problem) == first, "gives the same plan every time", problem)
    pods, nodes, shuffle = list(problem.pods), list(problem.nodes), random.Random(problem_to_json(problem))
    shuffle.shuffle(pods)
    shuffle.shuffle(nodes)
    other = subject.plan(replace(problem, pods=tuple(pods), nodes=tuple(nodes)))
    subject.require(other == first, "gives the same plan whatever the order of pods and nodes", problem)


def _input_untouched(subject: _Subject, problem: Problem) -> None:
    before = copy.deepcopy(problem)
    subject.plan(problem)
    subject.require(problem == before, "does not change the problem", before)


def _budgets(subject: _Subject, problem: Problem) -> None:
    plan = subject.plan(problem)
    pods, options = {pod.key: pod for pod in problem.pods}, problem.options
    running = [move for move in plan.moves if move.source is not None]
    counts: dict[str, Counter[str | None]] = {
        "max_moves": Counter("all" for _ in running),
        "max_moves_per_workload": Counter(_workload(pods[move.pod]) for move in running),
        "max_moves_per_namespace": Counter(pods[move.pod].namespace for move in running),
        "max_moves_per_node": Counter(end for move in running for end in (move.source, move.target)),
    }
    for name, counted in counts.items():
        limit = getattr(options, name)
        kept = limit is None or max(counted.values(), default=0) <= limit
        subject.require(kept, f"keeps {name}", problem)


def _workload(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.workload}" if pod.workload else pod.key


def _never_moves_what_may_not_move(subject: _Subject, problem: Problem) -> None:
    pods, scope = {pod.key: pod for pod in problem.pods}, problem.options.scope
    nodes = {node.name for node in problem.nodes}
    for move in subject.plan(problem).moves:
        pod = pods[move.pod]
        subject.require(not pod.fixed, f"does not move {pod.key}, which is fixed", problem)
        subject.require(pod.node == move.source != move.target, f"moves {pod.key} from its node to another", problem)
        if pod.node is not None:
            subject.require(pod.node in nodes, f"does not move {pod.key} from a node that is not there", problem)
            in_scope = scope is Scope.CLUSTER or (scope is not Scope.PENDING and not pod.happy)
            makes_room = scope is Scope.AFFECTED and subject.planner.name == "stable"
            waived = scope is not Scope.PENDING and Promise.SCOPE in subject.waives
            subject.require(in_scope or makes_room or waived, f"does not move {pod.key}, out of scope", problem)


def _reasons(subject: _Subject, problem: Problem) -> None:
    plan, nodes = subject.plan(problem), {node.name for node in problem.nodes}
    for move in plan.moves:
        subject.require(
            bool(move.reasons) and all(text.strip() for text in move.reasons), "moves have reasons", problem
        )
        subject.require(move.rank >= 1, "ranks start at 1", problem)
        rejected = {each.node for each in move.rejected}
        subject.require(rejected == nodes - {move.target}, "says why each other node was rejected", problem)
        subject.require(all(each.reason for each in move.rejected), "rejected nodes have a reason", problem)
    subject.require(all(stay.reason for stay in plan.stays), "pods that stay have a reason", problem)
    subject.require(all(pod.reason for pod in plan.unplaced), "unplaced pods have a reason", problem)


def _nobody_left_out(subject: _Subject, problem: Problem) -> None:
    ends = ends_of(subject.plan(problem))
    kept = all(ends[pod.key] is not None for pod in problem.pods if pod.node is not None)
    subject.require(kept, "no running pod loses its node", problem)


def _executable(subject: _Subject, problem: Problem) -> None:
    plan = subject.plan(problem)
    late = "; ".join(order_violations(problem, plan.moves, plan.unplaced))
    subject.require(not late, f"every listed move can be carried out in the plan's order, without {late}", problem)


def _never_worse(subject: _Subject, problem: Problem) -> None:
    """Without pending pods, so that doing nothing is the placement as it is."""
    if subject.objective is None:
        return
    pods = tuple(pod for pod in problem.pods if pod.node is not None)
    problem = replace(problem, pods=pods, options=replace(problem.options, only_if_better=True))
    after = subject.objective(problem, ends_of(subject.plan(problem)))
    before = subject.objective(problem, {pod.key: pod.node for pod in pods})
    subject.require(after <= before + 1e-9, "is not worse than doing nothing on its own objective", problem)


_POD = Pod("default/p", "uid-p", (1.0, 1.0, 1.0), (1.0, 1.0, 0.0), (1.0, 1.0, 1.0), node="n")
_NODE = Node("n", (4.0, 4.0, 4.0))
_BAD: dict[str, tuple[list[Pod], list[Node], str]] = {
    "negative need": ([replace(_POD, usage=(-1.0, 1.0, 1.0))], [_NODE], "default/p"),
    "not a number": ([replace(_POD, peak=(math.nan, 1.0, 1.0))], [_NODE], "default/p"),
    "endless": ([replace(_POD, request=(math.inf, 1.0, 1.0))], [_NODE], "default/p"),
    "too few amounts": ([replace(_POD, usage=(1.0,))], [_NODE], "default/p"),
    "pod twice": ([_POD, replace(_POD, uid="other")], [_NODE], "default/p"),
    "node twice": ([_POD], [_NODE, _NODE], "'n'"),
    "node without capacity": ([_POD], [_NODE, replace(_NODE, name="empty", allocatable=(0.0, 4.0, 4.0))], "empty"),
}


def _refuses_bad_problems(subject: _Subject, _: Problem) -> None:
    for title, (pods, nodes, named) in _BAD.items():
        try:
            subject.planner.plan(Problem(AXES, tuple(pods), tuple(nodes)))
        except ProblemError as error:
            subject.require(named in str(error), f"refuses a bad problem ({title}) naming {named}, not: {error}")
        else:
            subject.require(False, f"refuses a bad problem ({title}) with a ProblemError")


def _empty_cluster(subject: _Subject, _: Problem) -> None:
    nothing = Problem(AXES, (), ())
    plan = subject.plan(nothing)
    subject.require(not [*plan.moves, *plan.stays, *plan.unplaced], "plans nothing for an empty cluster", nothing)
    waiting = Problem(AXES, (replace(_POD, node=None),), ())
    unplaced = [pod.pod for pod in subject.plan(waiting).unplaced]
    subject.require(unplaced == ["default/p"], "leaves a pod unplaced where there is no node", waiting)


CHECKS: Mapping[str, Check] = {
    "says what it is": Check(_says_what_it_is, random=False),
    "feasible": Check(_feasible, Promise.FEASIBLE),
    "deterministic": Check(_deterministic, Promise.DETERMINISTIC),
    "input untouched": Check(_input_untouched),
    "budgets": Check(_budgets, Promise.BUDGETS),
    "never moves what may not move": Check(_never_moves_what_may_not_move),
    "reasons": Check(_reasons),
    "nobody left out": Check(_nobody_left_out, Promise.NOBODY_LEFT_OUT),
    "executable": Check(_executable, Promise.EXECUTABLE),
    "executable without room to spare": Check(_executable, Promise.EXECUTABLE, problem=full_problem),
    "never worse": Check(_never_worse, Promise.NEVER_WORSE),
    "never worse without room to spare": Check(_never_worse, Promise.NEVER_WORSE, problem=full_problem),
    "refuses bad problems": Check(_refuses_bad_problems, random=False),
    "empty cluster": Check(_empty_cluster, random=False),
}
