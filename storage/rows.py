"""What goes in and comes out: frozen values whose fields are the columns of the table, in the same order.

Times are seconds since the epoch. Ids are made by the caller; a row whose id is there already replaces it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SampleKind = Literal["pod", "node"]
DecisionKind = Literal["rematch", "wait", "place"]


@dataclass(frozen=True, slots=True)
class HappinessRow:
    """One per pod. `ledger` is JSON that only its owner understands: what counting goes on from after a restart."""

    uid: str
    namespace: str
    name: str
    successes: float
    failures: float
    at: float
    ledger: str = "{}"


@dataclass(frozen=True, slots=True)
class SampleRow:
    """`subject` is a pod's uid or a node's name. None is "not measured", which is not zero."""

    at: float
    kind: SampleKind
    subject: str
    cpu: float | None
    memory: float | None
    source: str


@dataclass(frozen=True, slots=True)
class DecisionRow:
    id: str
    cycle: str
    at: float
    kind: DecisionKind
    pod_uid: str
    pod_key: str
    reason: str
    text: str = ""
    until: float | None = None


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan without its document, which has a line per pod and can be large."""

    id: str
    cycle: str
    at: float
    planner: str
    mode: str
    trigger: str
    moves: int
    blocking_pairs: int
    feasible: bool


@dataclass(frozen=True, slots=True)
class PlanRow:
    """`document` is the plan as JSON in the public format."""

    id: str
    cycle: str
    at: float
    planner: str
    mode: str
    trigger: str
    moves: int
    blocking_pairs: int
    feasible: bool
    document: str


@dataclass(frozen=True, slots=True)
class MoveRow:
    """A move is open until `ended` is set. `plan_id` comes back as None once its plan is no longer kept."""

    id: str
    plan_id: str | None
    pod_uid: str
    pod_key: str
    workload: str
    from_node: str | None
    to_node: str
    state: str
    started: float
    evicted: float | None = None
    bound: float | None = None
    ready: float | None = None
    ended: float | None = None
    outcome: str = ""
    text: str = ""
    replacement_uid: str = ""


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision of the settings that was offered; `errors` are (path, message) when it was refused."""

    id: str
    at: float
    source: str
    digest: str
    accepted: bool
    errors: tuple[tuple[str, str], ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class MetaRow:
    key: str
    value: str


Row = HappinessRow | SampleRow | DecisionRow | PlanRow | MoveRow | RevisionRow | MetaRow
