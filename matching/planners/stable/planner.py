"""STABLE: the many-to-one stable matching of sized pods to nodes with quotas, as a plan.

`matching.preferences` defines the preferences, `serial_choice` finds the matching. The planner adds:

- Moves have a price, and benefit is weighed against it (`by_benefit`): of the matchings of the scope, and of the fewest
  moves that relieve the nodes of the unhappy pods, the plan is what is expected to save most for its price. When no
  placement helps, no running pod moves and the plan says what is missing.
- No pod loses its node. Without room by peaks a pod is placed with less headroom, and the plan names these pods.
- Never more moves than the budget.

The scope `affected` looks for the fewest moves that make the unhappy pods happy (`affected`). With inertia 0, as in the
paper, or with `dumping: allow` (`choice_with_dumping`), the matching of the whole cluster is taken whenever it is
better than nothing: less overload, fewer unhappy pods on overloaded nodes, or unhappy pods on clearly less loaded ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from matching.array_types import Ints
from matching.model.arrays import movable
from matching.plan import BlockingCause, Plan, Promise
from matching.planners.stable.affected import fewest_moves
from matching.planners.stable.budget_cut import cut_to_budget
from matching.planners.stable.by_benefit import best_benefit
from matching.planners.stable.serial_choice import choice_for_all, choice_with_dumping, serial_choice
from matching.planners.stable.small_search import with_fewer_blocking_pairs
from matching.planning.budget import budget_note, movers, stays_for_now, within_budget
from matching.planning.executable import executable
from matching.planning.objective import Score, helped, is_better, price, score, why_not_better
from matching.planning.outcome import Choice, Outcome
from matching.planning.prepared import PreparedProblem, prepare
from matching.planning.reasons.wording import NO_ROOM, NOBODY_MOVES, NOT_BETTER, plural
from matching.planning.write_plan import write_plan
from matching.problem import Availability, Dumping, Options, Problem, Scope

_NARROWING = {
    Scope.CLUSTER: (Scope.CLUSTER, Scope.UNHAPPY),
    Scope.UNHAPPY: (Scope.UNHAPPY,),
    Scope.PENDING: (Scope.PENDING,),
}

_SCOPE_NAMES = {
    Scope.CLUSTER: "the whole cluster",
    Scope.UNHAPPY: "the unhappy pods",
    Scope.PENDING: "the pending pods",
}


@dataclass(frozen=True, slots=True)
class StablePlanner:
    dumping: Dumping = Dumping.NEVER
    """`allow`: a pod that fits nowhere with the full headroom is left without a node, as in the paper."""
    availability: Availability = Availability.BEFORE
    """`after`: a node's room is what the pods that were matched before have left."""

    name: ClassVar[str] = "stable"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def plan(self, problem: Problem) -> Plan:
        options = self._with_parameters(problem.options)
        prepared = prepare(problem if options == problem.options else replace(problem, options=options))
        choose = choice_with_dumping if _dumps(prepared) else serial_choice
        baseline = choose(prepared, prepared.arrays.pending, prepared.arrays.current)
        if problem.options.scope is Scope.AFFECTED:
            return write_plan(self.name, prepared, fewest_moves(prepared, baseline))
        if _moves_cost(prepared) and not _dumps(prepared):
            return write_plan(self.name, prepared, best_benefit(prepared, baseline))
        return write_plan(self.name, prepared, _best(prepared, baseline, score(prepared.arrays, baseline.at)))

    def _with_parameters(self, options: Options) -> Options:
        """The planner's parameter applies unless it is the default; then the problem's option does."""
        dumping = options.dumping if self.dumping is Dumping.NEVER else self.dumping
        availability = options.availability if self.availability is Availability.BEFORE else self.availability
        return replace(options, dumping=dumping, availability=availability)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A matching that may become the plan."""

    scope: Scope
    outcome: Outcome
    intended: Score
    """If every move could be carried out."""
    after: Score
    moves: int

    @property
    def cut(self) -> bool:
        return self.outcome.cause is BlockingCause.BUDGET


def _best(prepared: PreparedProblem, alone: Choice, before: Score) -> Outcome:
    dropped: list[str] = []
    wanted, cause = alone, BlockingCause.NOT_WORTH_IT
    best: _Candidate | None = None
    for scope, choice in _matchings(prepared, dropped):
        if scope is prepared.problem.options.scope:
            wanted = choice
        elif len(movers(prepared.arrays, choice.at)) == 0:
            continue
        found = _evaluated(prepared, scope, choice, before)
        if not _worth_it(prepared, found, before):
            if found.cut:
                cause = BlockingCause.BUDGET
            dropped += [*found.outcome.notes, _why_dropped(before, found, prepared.problem.options.relief)]
        elif best is None or _is_preferred(prepared, before, best, found):
            best = found if scope is prepared.problem.options.scope else _narrowed(found, best, dropped)
        if best is not None and _is_final(prepared, best):
            break
    if best is not None:
        return best.outcome
    return Outcome(alone, wanted, cause, NOT_BETTER, (NOBODY_MOVES, *dropped))


def _evaluated(prepared: PreparedProblem, scope: Scope, choice: Choice, before: Score) -> _Candidate:
    def worth(at: Ints) -> tuple[Any, ...]:
        after, moves = score(prepared.arrays, at), len(movers(prepared.arrays, at)) if _moves_cost(prepared) else 0
        return price(before, after, moves, prepared.problem.options.relief)

    wanted = replace(_within_budget(prepared, choice), worth=worth)
    outcome = executable(prepared, wanted)
    at = outcome.choice.at
    after = intended = score(prepared.arrays, at)
    if at is not wanted.choice.at:
        intended = score(prepared.arrays, wanted.choice.at)
    return _Candidate(scope, outcome, intended, after, len(movers(prepared.arrays, at)))


def _is_final(prepared: PreparedProblem, best: _Candidate) -> bool:
    """Whether no narrower matching has to be tried."""
    return not best.cut and (best.moves == 0 or not _moves_cost(prepared))


def _dumps(prepared: PreparedProblem) -> bool:
    return prepared.problem.options.dumping is Dumping.ALLOW


def _moves_cost(prepared: PreparedProblem) -> bool:
    return prepared.problem.options.inertia > 0 and prepared.problem.options.only_if_better


def _is_preferred(prepared: PreparedProblem, before: Score, wide: _Candidate, narrow: _Candidate) -> bool:
    relief = prepared.problem.options.relief
    if _moves_cost(prepared):
        return price(before, narrow.after, narrow.moves, relief) < price(before, wide.after, wide.moves, relief)
    gains = [(helped(before, each.after, relief), -each.after.overload) for each in (wide, narrow)]
    return not narrow.cut or gains[1] > gains[0]


def _narrowed(found: _Candidate, wider: _Candidate | None, dropped: list[str]) -> _Candidate:
    """The wider matching was not worth its moves, or needed more of them."""
    cause = BlockingCause.NOT_WORTH_IT if wider is None else BlockingCause.NARROWER
    if found.cut:
        cause = BlockingCause.BUDGET
    notes = list(dropped)
    if wider is not None:
        fewer = f"that of {_SCOPE_NAMES[found.scope]} ({plural(found.moves, 'move')}) helps at least as much"
        notes.append(f"matching of {_SCOPE_NAMES[wider.scope]} ({plural(wider.moves, 'move')}) rejected: {fewer}")
    return replace(found, outcome=replace(found.outcome, cause=cause, notes=(*notes, *found.outcome.notes)))


def _why_dropped(before: Score, found: _Candidate, relief: float) -> str:
    stuck, after = len(found.outcome.choice.given_up), found.after
    without = f"without {plural(stuck, 'move')} that cannot be carried out, " if stuck else ""
    if not is_better(before, found.intended, relief):
        without, after = "", found.intended
    return f"matching of {_SCOPE_NAMES[found.scope]} dropped: {without}{why_not_better(before, after)}"


def _matchings(prepared: PreparedProblem, dropped: list[str]) -> Iterator[tuple[Scope, Choice]]:
    for scope in _NARROWING[prepared.problem.options.scope]:
        choosers = movable(prepared.arrays, scope)
        if _dumps(prepared):
            yield scope, choice_with_dumping(prepared, choosers, prepared.arrays.current)
            continue
        choice = choice_for_all(prepared, choosers)
        if choice is None:
            dropped.append(f"matching of {_SCOPE_NAMES[scope]} dropped: {NO_ROOM}")
        else:
            yield scope, with_fewer_blocking_pairs(prepared, choosers, choice)


def _worth_it(prepared: PreparedProblem, found: _Candidate, before: Score) -> bool:
    """A matching in which every running pod stays costs nothing. More unplaced pods are never worth it. The part that
    can be carried out of a matching that is not worth it is not worth it either: nobody chose that part."""
    options = prepared.problem.options
    if found.after.unplaced > before.unplaced:
        return False
    if len(movers(prepared.arrays, found.outcome.wanted.at)) == 0 or not options.only_if_better:
        return True
    return all(is_better(before, after, options.relief) for after in (found.intended, found.after))


def _within_budget(prepared: PreparedProblem, choice: Choice) -> Outcome:
    if within_budget(prepared.arrays, choice.at):
        return Outcome(choice, choice, _cause(choice))
    cut = cut_to_budget(prepared, choice)
    note = budget_note(prepared.arrays, cut.at, choice.at)
    return Outcome(cut, choice, BlockingCause.BUDGET, stays_for_now(prepared.problem.options), (note,))


def _cause(choice: Choice) -> BlockingCause:
    """Of the blocking pairs that the matching leaves."""
    if choice.given_up or choice.redirected:
        return BlockingCause.MOVE_ORDER
    return BlockingCause.NOBODY_LEFT_OUT if choice.kept_on_node else BlockingCause.NO_STABLE_MATCHING
