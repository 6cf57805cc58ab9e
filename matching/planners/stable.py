"""STABLE: the many-to-one stable matching of sized pods to nodes with quotas, as a plan.

`matching.preferences` says who likes whom (also what an unhappy pod thinks of its own node), `serial_choice` finds
the matching. Around it stand four promises:

- Nobody loses a node. Without room by peaks a pod is placed with less headroom, and the plan says for whom.
- A plan is better than leaving the running pods alone and only placing the pending ones: less overload, fewer
  unhappy pods on overloaded nodes, or unhappy pods on clearly less loaded nodes. If the whole cluster's matching is
  not, the one of the unhappy pods alone is tried; if that is not either, no running pod moves and a note says why.
- No move that does not pay. When both matchings are better than nothing, the one that helps more unhappy pods is
  taken; when they help as many, the one with less overload, each move counted as `relief` of overload. So one unhappy
  pod does not make ten happy ones move.
- Never more moves than the budget.

The scope `affected` asks for something else, the fewest moves that make the unhappy pods happy (`affected`). With
`dumping: allow` the first promise is given up (`dumping`).

With inertia 0, as in the paper, moves have no price: the whole cluster's matching is taken whenever it is worth it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from matching.arrays import movable
from matching.case import Case, open_case
from matching.objective import Score, helped, is_better, price, score, why_not_better
from matching.outcome import Choice, Outcome
from matching.plan import Cause, Plan, Promise
from matching.planners.affected import fewest_moves
from matching.planners.budget import budget_note, movers, stays_for_now, within_budget
from matching.planners.cutting import cut_to_budget
from matching.planners.dumping import choice_with_dumping
from matching.planners.serial_choice import choice_for_all, serial_choice
from matching.planners.small_search import steadier
from matching.possible import keep_possible
from matching.problem import Availability, Dumping, Options, Problem, Scope
from matching.reasons.wording import NO_ROOM, NOBODY_MOVES, NOT_BETTER, plural
from matching.writing import write_plan

_NARROWING = {
    Scope.CLUSTER: (Scope.CLUSTER, Scope.UNHAPPY),
    Scope.UNHAPPY: (Scope.UNHAPPY,),
    Scope.PENDING: (Scope.PENDING,),
}

_WHOM = {
    Scope.CLUSTER: "the whole cluster",
    Scope.UNHAPPY: "the unhappy pods",
    Scope.PENDING: "the pending pods",
}


@dataclass(frozen=True, slots=True)
class StablePlanner:
    dumping: Dumping = Dumping.NEVER
    """`allow`: who fits nowhere with the full headroom is left without a node, as in the paper."""
    availability: Availability = Availability.BEFORE
    """`after`: a node's room is what the pods that were matched before have left of it."""

    name: ClassVar[str] = "stable"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def plan(self, problem: Problem) -> Plan:
        options = self._with_parameters(problem.options)
        case = open_case(problem if options == problem.options else replace(problem, options=options))
        choose = choice_with_dumping if _dumps(case) else serial_choice
        alone = choose(case, case.arrays.pending, case.arrays.home)
        if problem.options.scope is Scope.AFFECTED:
            return write_plan(self.name, case, fewest_moves(case, alone))
        return write_plan(self.name, case, _best(case, alone, score(case.arrays, alone.at)))

    def _with_parameters(self, options: Options) -> Options:
        """What either the planner or the problem asks for."""
        dumping = options.dumping if self.dumping is Dumping.NEVER else self.dumping
        availability = options.availability if self.availability is Availability.BEFORE else self.availability
        return replace(options, dumping=dumping, availability=availability)


@dataclass(frozen=True, slots=True)
class _Found:
    """A matching that is worth its moves."""

    scope: Scope
    outcome: Outcome
    after: Score
    moves: int

    @property
    def cut(self) -> bool:
        return self.outcome.cause is Cause.BUDGET


def _best(case: Case, alone: Choice, before: Score) -> Outcome:
    dropped: list[str] = []
    wish, cause = alone, Cause.NOT_WORTH_IT
    best: _Found | None = None
    for scope, choice in _matchings(case, dropped):
        if scope is case.problem.options.scope:
            wish = choice
        elif len(movers(case.arrays, choice.at)) == 0:
            continue
        found = _judged(case, scope, choice)
        if not _worth_it(case, found, before):
            if found.cut:
                cause = Cause.BUDGET
            dropped += [*found.outcome.notes, _why_dropped(before, found)]
        elif best is None or _takes_over(case, before, best, found):
            best = found if scope is case.problem.options.scope else _narrowed(found, best, dropped)
        if best is not None and _settled(case, best):
            break
    if best is not None:
        return best.outcome
    return Outcome(alone, wish, cause, NOT_BETTER, (NOBODY_MOVES, *dropped))


def _judged(case: Case, scope: Scope, choice: Choice) -> _Found:
    outcome, _ = keep_possible(case, _within_budget(case, choice))
    at = outcome.choice.at
    return _Found(scope, outcome, score(case.arrays, at), len(movers(case.arrays, at)))


def _settled(case: Case, best: _Found) -> bool:
    """A narrower matching need not be tried."""
    return not best.cut and (best.moves == 0 or not _moves_cost(case))


def _dumps(case: Case) -> bool:
    return case.problem.options.dumping is Dumping.ALLOW


def _moves_cost(case: Case) -> bool:
    return case.problem.options.inertia > 0 and case.problem.options.only_if_better


def _takes_over(case: Case, before: Score, wide: _Found, narrow: _Found) -> bool:
    relief = case.problem.options.relief
    if _moves_cost(case):
        return price(before, narrow.after, narrow.moves, relief) < price(before, wide.after, wide.moves, relief)
    gains = [(helped(before, each.after, relief), -each.after.overload) for each in (wide, narrow)]
    return not narrow.cut or gains[1] > gains[0]


def _narrowed(found: _Found, wider: _Found | None, dropped: list[str]) -> _Found:
    """What a wider matching would have resolved was not worth it, or not worth that many moves."""
    cause = Cause.NOT_WORTH_IT if wider is None else Cause.NARROWER
    if found.cut:
        cause = Cause.BUDGET
    notes = list(dropped)
    if wider is not None:
        fewer = f"that of {_WHOM[found.scope]} ({plural(found.moves, 'move')}) does as much good or more"
        notes.append(f"matching of {_WHOM[wider.scope]} ({plural(wider.moves, 'move')}) set aside: {fewer}")
    return replace(found, outcome=replace(found.outcome, cause=cause, notes=(*notes, *found.outcome.notes)))


def _why_dropped(before: Score, found: _Found) -> str:
    return f"matching of {_WHOM[found.scope]} dropped: {why_not_better(before, found.after)}"


def _matchings(case: Case, dropped: list[str]) -> Iterator[tuple[Scope, Choice]]:
    for scope in _NARROWING[case.problem.options.scope]:
        choosers = movable(case.arrays, scope)
        if _dumps(case):
            yield scope, choice_with_dumping(case, choosers, case.arrays.home)
            continue
        choice = choice_for_all(case, choosers)
        if choice is None:
            dropped.append(f"matching of {_WHOM[scope]} dropped: {NO_ROOM}")
        else:
            yield scope, steadier(case, choosers, choice)


def _worth_it(case: Case, found: _Found, before: Score) -> bool:
    """A matching in which every running pod stays costs nothing; nobody pending may lose a node by any."""
    options = case.problem.options
    if found.after.unplaced > before.unplaced:
        return False
    if len(movers(case.arrays, found.outcome.wish.at)) == 0 or not options.only_if_better:
        return True
    return is_better(before, found.after, options.relief)


def _within_budget(case: Case, choice: Choice) -> Outcome:
    if within_budget(case.arrays, choice.at):
        return Outcome(choice, choice, Cause.NOBODY_LEFT_OUT if choice.kept_home else Cause.NO_STABLE_MATCHING)
    cut = cut_to_budget(case, choice)
    note = budget_note(case.arrays, cut.at, choice.at)
    return Outcome(cut, choice, Cause.BUDGET, stays_for_now(case.problem.options), (note,))
