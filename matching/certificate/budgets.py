"""Budgets, counted again from the finished moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from matching.plan import PlannedMove, Unplaced
from matching.problem import Problem


def over_budget(problem: Problem, moves: Sequence[PlannedMove], unplaced: Sequence[Unplaced] = ()) -> Iterator[str]:
    """A pending pod's placement counts nowhere; a node is charged for what leaves it and for what enters it. A pod
    that is dumped is disturbed like one that is moved."""
    options = problem.options
    everybody: list[PlannedMove | Unplaced] = [*moves, *unplaced]
    disturbed = [each for each in everybody if each.source is not None]
    named = {each.pod for each in disturbed}
    workloads = {pod.key: pod.workload for pod in problem.pods if pod.key in named}
    namespaces = [move.pod.split("/", 1)[0] for move in disturbed]
    replicas_of = [
        f"workload {namespace}/{workload}" if (workload := workloads.get(move.pod)) else f"pod {move.pod}"
        for move, namespace in zip(disturbed, namespaces, strict=True)
    ]
    yield from _over(options.max_moves, ["plan"] * len(disturbed))
    yield from _over(options.max_moves_per_workload, replicas_of)
    yield from _over(options.max_moves_per_namespace, (f"namespace {name}" for name in namespaces))
    yield from _over(options.max_moves_per_node, (f"node {end}" for each in disturbed for end in _ends(each)))


def _ends(disturbed: PlannedMove | Unplaced) -> list[str | None]:
    return [disturbed.source, disturbed.target] if isinstance(disturbed, PlannedMove) else [disturbed.source]


def _over(limit: int | None, counted: Iterable[str]) -> Iterator[str]:
    if limit is None:
        return
    for what, count in sorted(Counter(counted).items()):
        if count > limit:
            yield f"{what}: {count} moves of running pods, the budget is {limit}"
