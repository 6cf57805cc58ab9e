"""STABLE: the many-to-one stable matching of sized pods to nodes with quotas, as a plan.

`matching.preferences` says who likes whom (also what an unhappy pod thinks of its own node), `serial_choice` finds
the matching. Around it stand three promises:

- Nobody loses a node. Without room by peaks a pod is placed with less headroom, and the plan says for whom.
- A plan is better than leaving the running pods alone and only placing the pending ones: less overload, fewer
  unhappy pods on overloaded nodes, or unhappy pods on clearly less loaded nodes. If the whole cluster's matching is
  not, the one of the unhappy pods alone is tried; if that is not either, no running pod moves and a note says why.
- Never more moves than the budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from matching.arrays import movable
from matching.case import Case, open_case
from matching.objective import Score, helped, is_better, score, why_not_better
from matching.outcome import Choice, Outcome
from matching.plan import Cause, Plan, Promise
from matching.planners.budget import budget_words, movers, within_budget
from matching.planners.cutting import cut_to_budget
from matching.planners.serial_choice import choice_for_all, serial_choice
from matching.possible import keep_possible
from matching.problem import Problem, Scope
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
    name: ClassVar[str] = "stable"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def plan(self, problem: Problem) -> Plan:
        case = open_case(problem)
        alone = serial_choice(case, case.arrays.pending, case.arrays.home)
        before = score(case.arrays, alone.at)
        return write_plan(self.name, case, _best(case, alone, before))


def _best(case: Case, alone: Choice, before: Score) -> Outcome:
    """The first matching that is worth its moves; of those cut to the budget the one that helps most."""
    options = case.problem.options
    dropped: list[str] = []
    wish, cause = alone, Cause.NOT_WORTH_IT
    cut: list[tuple[tuple[int, float], Outcome]] = []
    for scope, choice in _matchings(case, dropped):
        if scope is options.scope:
            wish = choice
        elif len(movers(case.arrays, choice.at)) == 0:
            continue
        outcome, _ = keep_possible(case, _within_budget(case, choice))
        after = score(case.arrays, outcome.choice.at)
        if not _worth_it(case, outcome, before, after):
            if outcome.cause is Cause.BUDGET:
                cause = Cause.BUDGET
            dropped += [*outcome.notes, f"matching of {_WHOM[scope]} dropped: {why_not_better(before, after)}"]
            continue
        if scope is not options.scope:
            outcome = _narrowed(outcome, dropped)
        if outcome.cause is not Cause.BUDGET:
            return outcome
        cut.append(((helped(before, after, options.relief), -after.overload), outcome))
    if cut:
        return max(cut, key=lambda each: each[0])[1]
    held_back = "stays: moving would not be better than doing nothing"
    return Outcome(alone, wish, cause, held_back, ("no running pod is moved", *dropped))


def _narrowed(outcome: Outcome, dropped: list[str]) -> Outcome:
    """What a wider matching would have resolved was not worth it."""
    cause = Cause.BUDGET if outcome.cause is Cause.BUDGET else Cause.NOT_WORTH_IT
    return replace(outcome, cause=cause, notes=(*dropped, *outcome.notes))


def _matchings(case: Case, dropped: list[str]) -> Iterator[tuple[Scope, Choice]]:
    for scope in _NARROWING[case.problem.options.scope]:
        choice = choice_for_all(case, movable(case.arrays, scope))
        if choice is None:
            dropped.append(f"matching of {_WHOM[scope]} dropped: some pods would find no room by their requests")
        else:
            yield scope, choice


def _worth_it(case: Case, outcome: Outcome, before: Score, after: Score) -> bool:
    """A matching in which every running pod stays costs nothing; nobody pending may lose a node by any."""
    if after.unplaced > before.unplaced:
        return False
    if len(movers(case.arrays, outcome.wish.at)) == 0 or not case.problem.options.only_if_better:
        return True
    return is_better(before, after, case.problem.options.relief)


def _within_budget(case: Case, choice: Choice) -> Outcome:
    if within_budget(case.arrays, choice.at):
        return Outcome(choice, choice, Cause.NOBODY_LEFT_OUT if choice.kept_home else Cause.NO_STABLE_MATCHING)
    cut = cut_to_budget(case, choice)
    wanted, kept = len(movers(case.arrays, choice.at)), len(movers(case.arrays, cut.at))
    budget = budget_words(case.problem.options)
    note = f"{budget}: {kept} of {wanted} wanted moves are in the plan"
    return Outcome(cut, choice, Cause.BUDGET, f"stays for now: {budget}", (note,))
