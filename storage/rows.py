"""The rows of the store: frozen values. Their fields are the columns of the table, in the same order.

Times are seconds since the epoch. The caller makes the ids. A row replaces the stored row with the same id.

Decisions, plans, moves and settings revisions are the history. The store gives each of these rows a `seq` when it is
added: a number that grows with time across the four tables. Readers sort and page by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

SeriesKind = Literal["pod", "node", "workload"]
DecisionKind = Literal["rematch", "wait", "place", "move"]


@dataclass(frozen=True, slots=True)
class HappinessRow:
    """One per pod. `probe_history` is JSON: the probe counts to continue from after a restart."""

    uid: str
    namespace: str
    name: str
    successes: float
    failures: float
    at: float
    probe_history: str = "{}"


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """A pod (`namespace/name`), node or workload whose usage is recorded."""

    id: int
    kind: SeriesKind
    name: str
    block: int
    """The series of a block are stored together."""
    seen: float
    """When it was recorded last, to the day."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """Usage of the series of a block from `start` on, in steps of `step` seconds. The document is compressed."""

    step: int
    start: int
    block: int
    document: bytes


@dataclass(frozen=True, slots=True)
class UsageEventRow:
    """What explains a change of usage: a rollout, a scaling, a change of a node."""

    at: float
    kind: SeriesKind
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """Bytes that one part of the program writes and reads again; the name says which."""

    name: str
    at: float
    document: bytes


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A decision about one pod: to wait, where a pending pod goes, a rematch for which no plan was made, or
    whether a move helped."""

    id: str
    cycle: str
    at: float
    kind: DecisionKind
    pod_uid: str
    pod_key: str
    reason: str
    text: str = ""
    until: float | None = None
    seq: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class PlanRow:
    """`document` is the plan as JSON in the public format, without the pods that stay, and the unhappy pods that it is
    for.

    `text` says what the plan is for. `pod_key` is the pod it is for, if that is one pod.
    """

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
    pod_key: str | None = None
    text: str = ""
    seq: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """The problem that a plan solves. `document` is compressed JSON, or None with a `note` that says why."""

    plan_id: str
    document: bytes | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class MoveRow:
    """A move is open until `ended` is set. `plan_id` is None once its plan is pruned."""

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
    cycle: str = ""
    """The cycle that changed the state last."""
    at: float = 0.0
    """When the state changed last."""
    reasons: tuple[str, ...] = ()
    """The plan's reasons for the move."""
    seq: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision of the settings that was read. `errors` are (path, message) if it was refused."""

    id: str
    at: float
    source: str
    digest: str
    accepted: bool
    errors: tuple[tuple[str, str], ...] = ()
    text: str = ""
    seq: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class LoadBinRow:
    """Probes of pods on nodes with about the same load, decayed to the time `at`."""

    bin: int
    probes: float
    failures: float
    load: float
    """The sum over the probes. Divided by `probes` it is their mean."""
    expected: float
    """Failures that the curve in force foretold for these probes."""
    at: float


@dataclass(frozen=True, slots=True)
class StartupRow:
    """The newest start-up times of a workload's pods, oldest first."""

    workload: str
    at: float
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MoveCheckRow:
    """Which share of its probes a moved pod was expected to fail on its new node, and which it did fail. `observed` and
    `helped` are None until the move is judged."""

    move_id: str
    plan_id: str
    replacement_uid: str
    node: str
    at: float
    expected: float
    observed: float | None = None
    helped: bool | None = None


Row = (
    HappinessRow
    | SeriesRow
    | ChunkRow
    | UsageEventRow
    | DecisionRow
    | PlanRow
    | ProblemRow
    | MoveRow
    | RevisionRow
    | LoadBinRow
    | StartupRow
    | MoveCheckRow
    | DocumentRow
)
