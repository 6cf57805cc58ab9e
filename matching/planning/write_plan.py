"""Writes an outcome as a plan: moves in order, reasons, certificate, measures, notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from matching.plan import Plan
from matching.planning.benefit import benefits_of
from matching.planning.executable import executable
from matching.planning.expectation import Expectation
from matching.planning.missing import missing
from matching.planning.outcome import Choice, Outcome, measure
from matching.planning.prepared import PreparedProblem
from matching.planning.reasons.moves import MOST_EXPLAINED, explained, explained_by_planner
from matching.planning.reasons.obstacles import missing_for_pending, some
from matching.planning.reasons.stays import fixed_pending, stays
from matching.planning.reasons.wording import plural
from matching.verify import certify


def write_plan(planner: str, prepared: PreparedProblem, outcome: Outcome) -> Plan:
    outcome = executable(prepared, outcome)
    arrays, at = prepared.arrays, outcome.choice.at
    before = measure(arrays, arrays.current)
    if outcome.reasons is None:
        explanations, without_node = explained(prepared, outcome.choice, before)
    else:
        explanations, without_node = explained_by_planner(prepared, outcome.choice, outcome.reasons)
    for pod, why in outcome.choice.redirected.items():
        explanations[pod] = replace(explanations[pod], reasons=(*explanations[pod].reasons, why))
    expectation = outcome.expectation or Expectation(arrays)
    benefits = benefits_of(prepared, at, outcome.required_ratio or 0.0, expectation)
    moves = tuple(benefits.on(pod, explanations[pod]) for pod in outcome.order or ())
    lacking = missing(prepared, at) if outcome.required_ratio is not None else None
    staying, held_back = stays(prepared, outcome), _held_back(prepared, outcome.choice)
    unplaced = tuple(sorted([*without_node, *fixed_pending(prepared)], key=lambda pod: pod.pod))
    return Plan(
        planner=planner,
        moves=moves,
        stays=staying,
        unplaced=unplaced,
        certificate=certify(prepared.problem, moves, staying, unplaced, outcome.cause, held_back),
        before=before,
        after=measure(arrays, at),
        notes=(*outcome.notes, *_notes(prepared, outcome.choice), *_unlisted(len(moves))),
        benefit=benefits.plan,
        missing=lacking,
    )


def _held_back(prepared: PreparedProblem, choice: Choice) -> frozenset[str]:
    """Pods without the node that the planner chose for them."""
    return frozenset(prepared.arrays.pods[pod].key for pod in (*choice.given_up, *choice.redirected))


def _notes(prepared: PreparedProblem, choice: Choice) -> Iterator[str]:
    if prepared.problem.needs_from != "metrics":
        yield f"usage and peaks are taken from {prepared.problem.needs_from}, not from metrics"
    if prepared.problem.estimates:
        yield prepared.problem.estimates
    if choice.headroom:
        many = plural(len(choice.headroom), "pod")
        yield f"degraded, {many} with less headroom than wanted: {_names(prepared, choice.headroom)}"
    if choice.kept_on_node:
        yield f"kept where they are so that no pod is left without a node: {_names(prepared, choice.kept_on_node)}"
    if choice.given_up:
        yield f"kept where they are, because no order of the moves lets them go: {_names(prepared, choice.given_up)}"
    if choice.redirected:
        names = _names(prepared, choice.redirected)
        yield f"sent to another node, because moves would wait for each other's room: {names}"
    yield from missing_for_pending(prepared, choice.at)


def _unlisted(moves: int) -> Iterator[str]:
    if moves > MOST_EXPLAINED:
        yield f"the nodes that were not chosen are listed for {MOST_EXPLAINED} of {moves} moves"


def _names(prepared: PreparedProblem, pods: Iterable[int]) -> str:
    return some(prepared.arrays.pods[pod].key for pod in sorted(pods))
