"""An outcome written up as a plan: moves in order, reasons, certificate, measures, notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from matching.case import Case
from matching.measures import measure
from matching.outcome import Choice, Outcome
from matching.plan import Plan
from matching.possible import keep_possible
from matching.reasons.missing import missing
from matching.reasons.moves import MOST_EXPLAINED, explained
from matching.reasons.obstacles import some
from matching.reasons.reasoning import told
from matching.reasons.stays import left_alone, stays
from matching.reasons.wording import plural
from matching.verify import certify


def write_plan(planner: str, case: Case, outcome: Outcome) -> Plan:
    outcome, ordered = keep_possible(case, outcome)
    arrays, at = case.arrays, outcome.choice.at
    before = measure(arrays, arrays.home)
    if outcome.reasoning is None:
        explanations, without_node = explained(case, outcome.choice, before)
    else:
        explanations, without_node = told(case, outcome.choice, outcome.reasoning)
    moves = tuple(explanations[pod] for pod in (*ordered.free, *ordered.ring))
    staying = stays(case, outcome)
    unplaced = tuple(sorted([*without_node, *left_alone(case)], key=lambda pod: pod.pod))
    return Plan(
        planner=planner,
        moves=moves,
        stays=staying,
        unplaced=unplaced,
        certificate=certify(case.problem, moves, staying, unplaced, cause=outcome.cause),
        before=before,
        after=measure(arrays, at),
        notes=(*outcome.notes, *_notes(case, outcome.choice, ordered.ring), *_unlisted(len(moves))),
    )


def _notes(case: Case, choice: Choice, ring: tuple[int, ...]) -> Iterator[str]:
    if case.problem.needs_from != "metrics":
        yield f"usage and peaks are taken from {case.problem.needs_from}, not from metrics"
    if choice.headroom:
        many = plural(len(choice.headroom), "pod")
        yield f"degraded, {many} with less headroom than wanted: {_names(case, choice.headroom)}"
    if choice.kept_home:
        yield f"kept where they are so that nobody is left out: {_names(case, choice.kept_home)}"
    if choice.held:
        yield f"kept where they are by rules between pods: {_names(case, choice.held)}"
    if ring:
        yield f"these moves wait for each other's room: {_names(case, ring)}"
    yield from missing(case, choice.at)


def _unlisted(moves: int) -> Iterator[str]:
    if moves > MOST_EXPLAINED:
        yield f"the nodes that were not chosen are listed for {MOST_EXPLAINED} of {moves} moves"


def _names(case: Case, pods: Iterable[int]) -> str:
    return some(case.arrays.pods[pod].key for pod in sorted(pods))
