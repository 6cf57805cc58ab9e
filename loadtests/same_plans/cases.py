"""One case: a random input, what the project makes of it, and its fingerprint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from loadtests.same_plans.draw import Json
from loadtests.same_plans.fingerprint import Entry, Result
from loadtests.same_plans.project import solve_problem, solve_snapshot
from loadtests.same_plans.random_clusters import random_snapshot
from loadtests.same_plans.random_problems import random_problem
from reactor.errors import InputError


class _Kind(NamedTuple):
    generate: Callable[[int], Json]
    solve: Callable[[Json], Result]


_KINDS: Mapping[str, _Kind] = {
    "problem": _Kind(random_problem, solve_problem),
    "snapshot": _Kind(random_snapshot, solve_snapshot),
}


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    kind: str
    given: Json
    found: Json
    """By part, without words."""

    @property
    def entry(self) -> Entry:
        return Entry.of(self.id, self.kind, self.found)


def make_case(kind: str, number: int) -> Case:
    generate, solve = _KINDS[kind]
    given = generate(number)
    return Case(f"{kind}-{number:05}", kind, given, solve(given).without_words())


def case_by_id(case: str) -> Case:
    kind, _, number = case.partition("-")
    if kind not in _KINDS or not number.isdigit():
        raise InputError(f"no case {case!r}; the names are problem-00000 and snapshot-00000")
    return make_case(kind, int(number))


@dataclass(slots=True)
class Coverage:
    """What the random inputs lead to. Fingerprints of plans that never move a pod would prove nothing."""

    planners: dict[str, Counter[str]] = field(default_factory=dict)
    """Runs of each planner."""
    snapshots: Counter[str] = field(default_factory=Counter)
    waits: Counter[str] = field(default_factory=Counter)
    """Pods by code."""
    fixed: Counter[str] = field(default_factory=Counter)
    """Pods by code."""
    causes: Counter[str] = field(default_factory=Counter)
    """Blocking pairs by cause."""

    def add(self, case: Case) -> None:
        for name, part in case.found.items():
            kind, _, planner = name.partition(" of ")
            if kind == "plan" and planner:
                self._add_plan(planner, part, case.found[f"certificate of {planner}"])
        if case.kind == "snapshot":
            self._add_plan("in snapshots", case.found["plan"], case.found["certificate"])
            self._add_decision(case.found)

    def to_json(self) -> Json:
        return {
            "planners": {name: dict(counts) for name, counts in sorted(self.planners.items())},
            "snapshots": dict(self.snapshots),
            "waits": dict(self.waits.most_common()),
            "fixed": dict(self.fixed.most_common()),
            "causes": dict(self.causes.most_common()),
        }

    def _add_plan(self, planner: str, plan: Json, certificate: Json) -> None:
        counts = self.planners.setdefault(planner, Counter())
        counts["runs"] += 1
        if "error" in plan:
            counts["errors"] += 1
            return
        counts["moves"] += bool(plan["moves"])
        counts["moves of running pods"] += any(move["from"] for move in plan["moves"])
        counts["unplaced"] += bool(plan["unplaced"])
        counts["blocking"] += bool(certificate["blocking"])
        counts["infeasible"] += not certificate["feasible"]
        self.causes.update(pair["cause"] for pair in certificate["blocking"])

    def _add_decision(self, found: Json) -> None:
        decision = found["decision"]
        self.snapshots["all"] += 1
        self.snapshots["with unhappy pods"] += bool(decision["unhappy"])
        self.snapshots["with waits"] += bool(decision["waits"])
        self.snapshots["by requests"] += found["look"]["needs"] == "requests"
        self.snapshots["with pods to place"] += bool(found["pending"]["place"])
        self.waits.update(" ".join(wait["why"]["codes"]) for wait in decision["waits"])
        fixed = (" ".join(each["codes"]) or "(no code)" for each in found["fixed"].values() if each["fixed"])
        self.fixed.update(fixed)
