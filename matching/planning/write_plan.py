"""Writes an outcome as a plan: moves in order, reasons, certificate, measures, notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from matching.plan import Plan
from matching.planning.move_order import drop_impossible_moves
from matching.planning.outcome import Choice, Outcome, measure
from matching.planning.prepared import PreparedProblem
from matching.planning.reasons.moves import MOST_EXPLAINED, explained, explained_by_planner
from matching.planning.reasons.obstacles import missing, some
from matching.planning.reasons.stays import fixed_pending, stays
from matching.planning.reasons.wording import plural
from matching.verify import certify


def write_plan(planner: str, prepared: PreparedProblem, outcome: Outcome) -> Plan:
    outcome, ordered = drop_impossible_moves(prepared, outcome)
    arrays, at = prepared.arrays, outcome.choice.at
    before = measure(arrays, arrays.current)
    if outcome.reasons is None:
        explanations, without_node = explained(prepared, outcome.choice, before)
    else:
        explanations, without_node = explained_by_planner(prepared, outcome.choice, outcome.reasons)
    moves = tuple(explanations[pod] for pod in (*ordered.in_order, *ordered.cyclic))
    staying = stays(prepared, outcome)
    unplaced = tuple(sorted([*without_node, *fixed_pending(prepared)], key=lambda pod: pod.pod))
    return Plan(
        planner=planner,
        moves=moves,
        stays=staying,
        unplaced=unplaced,
        certificate=certify(prepared.problem, moves, staying, unplaced, cause=outcome.cause),
        before=before,
        after=measure(arrays, at),
        notes=(*outcome.notes, *_notes(prepared, outcome.choice, ordered.cyclic), *_unlisted(len(moves))),
    )


def _notes(prepared: PreparedProblem, choice: Choice, cyclic: tuple[int, ...]) -> Iterator[str]:
    if prepared.problem.needs_from != "metrics":
        yield f"usage and peaks are taken from {prepared.problem.needs_from}, not from metrics"
    if choice.headroom:
        many = plural(len(choice.headroom), "pod")
        yield f"degraded, {many} with less headroom than wanted: {_names(prepared, choice.headroom)}"
    if choice.kept_on_node:
        yield f"kept where they are so that no pod is left without a node: {_names(prepared, choice.kept_on_node)}"
    if choice.given_up:
        yield f"kept where they are by inter-pod constraints: {_names(prepared, choice.given_up)}"
    if cyclic:
        yield f"these moves wait for each other's room: {_names(prepared, cyclic)}"
    yield from missing(prepared, choice.at)


def _unlisted(moves: int) -> Iterator[str]:
    if moves > MOST_EXPLAINED:
        yield f"the nodes that were not chosen are listed for {MOST_EXPLAINED} of {moves} moves"


def _names(prepared: PreparedProblem, pods: Iterable[int]) -> str:
    return some(prepared.arrays.pods[pod].key for pod in sorted(pods))
