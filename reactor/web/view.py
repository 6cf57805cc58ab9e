"""What the dashboard and the HTTP API show, as values, and the protocols of what provides them.

Keys are camelCase in JSON. Times are seconds since the epoch. A number that is not known is None, never 0.
Text may come from the cluster and may be hostile. It is sent as it is and shown as plain text.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from reactor.record.calibration_summary import CalibrationSummary
from reactor.record.history_reader import HistoryEntry, HistoryKind
from reactor.record.unhappy_pods import EvidencePart
from reactor.record.usage_reader import UsageDocument
from reactor.web.query import FindQuery, OverviewQuery, PodsQuery, TopQuery, UsageQuery


class Gauge(Struct, frozen=True, rename="camel"):
    """Used, requested and allocatable amount of one resource of a node, in `unit` (cores or bytes)."""

    used: float | None
    capacity: float
    unit: str
    requested: float | None = None


class PodChip(Struct, frozen=True, rename="camel"):
    """A pod in the overview. `happiness` is None if nothing is known yet or the pod is not managed."""

    uid: str
    key: str
    """`namespace/name`."""
    happiness: float | None
    threshold: float
    happy: bool
    managed: bool = True
    ready: bool = True
    phase: str = "Running"
    cpu: float | None = None
    """Cores in use."""
    fixed: str = ""
    """Why it may not be moved; empty when it may."""
    node: str | None = None


class PodTotals(Struct, frozen=True, rename="camel"):
    """Numbers of pods, counted before a list is cut to what a page can show."""

    pods: int
    managed: int
    unhappy: int


class NodeView(Struct, frozen=True, rename="camel"):
    """`counts` are of all its pods, or of those that match the search; `pods` may be fewer."""

    name: str
    ready: bool
    unschedulable: bool
    cpu: Gauge | None
    memory: Gauge | None
    pods: tuple[PodChip, ...]
    counts: PodTotals | None = None


class NodeSummary(Struct, frozen=True, rename="camel"):
    """All nodes in a few numbers."""

    not_ready: int
    unschedulable: int
    with_unhappy_pods: int
    not_measured: int
    load_bands: tuple[int, ...]
    """Nodes by the share of CPU or memory in use, whichever is higher: below 10 %, below 20 % ... 90 % and more."""


class Refusal(Struct, frozen=True, rename="camel"):
    """One error of a refused settings revision."""

    path: str
    message: str


class SettingsView(Struct, frozen=True, rename="camel"):
    """The revision in force. `refused` lists the errors of a newer one that was refused."""

    digest: str
    source: str
    refused: tuple[Refusal, ...] = ()


class Totals(Struct, frozen=True, rename="camel"):
    """`matching_nodes` is the number of nodes that match the search of the request."""

    nodes: int
    matching_nodes: int
    pods: int
    managed: int
    unhappy: int
    pending: int
    lowest_happiness: float | None


class SteeringView(Struct, frozen=True, rename="camel"):
    """How replacements get to their planned nodes, and where they landed since the controller started."""

    mode: str
    """`placement.steering` of the settings."""
    policy_works: bool
    tried: bool
    """Whether a canary pod showed it."""
    problem: str
    """What keeps `mode` from working, and the command that mends it; empty when a canary, or kube-scheduler's questions
    to the extender, showed that it works."""
    landed_planned: int = 0
    landed_elsewhere: int = 0
    landed_source: int = 0


class PowerView(Struct, frozen=True, rename="camel"):
    """Estimated by the CPU of the nodes, in watts."""

    watts: float
    """Of the nodes that are measured."""
    idle_nodes: int
    """Of those, without a pod that could run elsewhere."""
    idle_watts: float
    """The part of `watts` that idle nodes draw."""
    not_measured: int
    """Nodes that are not in the figures."""
    plan_before: float | None = None
    """With the newest plan of this process: watts before and after, and the nodes that it leaves idle."""
    plan_after: float | None = None
    plan_idle_nodes: int | None = None


class Overview(Struct, frozen=True, rename="camel"):
    """`nodes` and `pending` are what a query selects, the other numbers are of the whole cluster."""

    title: str
    mode: str
    """`observe`, `bind` or `act`."""
    synced: bool
    halted: str | None
    """Why no further move is started."""
    planner: str
    threshold: float
    at: float
    cycles: int
    rematches: int
    moves: int
    settings: SettingsView
    problems: tuple[str, ...]
    nodes: tuple[NodeView, ...]
    pending: tuple[PodChip, ...]
    totals: Totals | None = None
    node_summary: NodeSummary | None = None
    steering: SteeringView | None = None
    calibration: CalibrationSummary | None = None
    power: PowerView | None = None
    """None when no node is measured."""


class PodPage(Struct, frozen=True, rename="camel"):
    """Pods that match a query, the worst first; `totals` counts all that match."""

    at: float
    pods: tuple[PodChip, ...]
    totals: PodTotals


class NodeSeries(Struct, frozen=True, rename="camel"):
    """Shares of capacity, one value per time of the series."""

    name: str
    cpu: tuple[float | None, ...]
    memory: tuple[float | None, ...]


class Series(Struct, frozen=True, rename="camel"):
    """Columns of equal length, oldest first. Availability and happiness are 0..1, latency is in seconds."""

    times: tuple[float, ...]
    availability: tuple[float | None, ...]
    latency_p95: tuple[float | None, ...]
    happiness_min: tuple[float | None, ...]
    happiness_mean: tuple[float | None, ...]
    nodes: tuple[NodeSeries, ...]
    rematches: tuple[float, ...] = ()
    """Times of rematches: marks in the charts."""
    node_count: int | None = None
    """Number of nodes before `nodes` is cut to the busiest ones."""


class LoadBin(Struct, frozen=True, rename="camel"):
    """Probes of pods on nodes with a load (a share of allocatable, on the worst axis) from `begin` to `end`. The last
    bin takes everything above, too."""

    begin: float
    end: float
    load: float
    """The mean load."""
    probes: float
    """Decayed over weeks."""
    observed: float
    """The share that failed."""
    expected: float
    """The share that the curve expected to fail, each before it was counted."""


class CurveLine(Struct, frozen=True, rename="camel"):
    """The probability that a probe fails: a logistic curve over the load of the node."""

    floor: float
    ceiling: float
    midpoint: float
    width: float
    probabilities: tuple[float, ...]
    """One per load of the calibration's `loads`."""


class CalibrationView(Struct, frozen=True, rename="camel"):
    """How well the failure curve predicts what happens."""

    summary: CalibrationSummary
    text: str
    """The summary in one line."""
    bins: tuple[LoadBin, ...]
    loads: tuple[float, ...]
    curve: CurveLine
    """The curve in force."""
    prior: CurveLine
    """The curve before any probe was counted."""


class EvidenceCount(Struct, frozen=True, rename="camel"):
    """Failed probes, not decayed, that one source reported first: `events`, `counters` or `kills`."""

    source: str
    failures: float


class ProbeMessage(Struct, frozen=True, rename="camel"):
    at: float
    count: int
    text: str


class Evidence(Struct, frozen=True, rename="camel"):
    """Pr = (goodwill + successes) / (goodwill + successes + failures), counts decayed by `half_life` seconds."""

    value: float
    threshold: float
    threshold_source: str
    """Where the threshold comes from: `pod annotation`, `namespace annotation`, `namespace settings` or `global`."""
    happy: bool
    successes: float
    failures: float
    goodwill: float
    half_life: float
    sources: tuple[EvidenceCount, ...] = ()
    last_failure: float | None = None
    messages: tuple[ProbeMessage, ...] = ()


class ForecastView(Struct, frozen=True, rename="camel"):
    """Of a pod for one resource, until the horizon that counts for it."""

    horizon: float
    """Seconds."""
    value: float
    peak: float
    coverage: float
    """The share of such times in which the usage shall stay below the peak."""
    trust: str
    """`calibrated`, `uncalibrated`, or `lower bound`: demand was cut by throttling or a full node."""
    seconds_to_limit: float | None = None
    """Until steadily growing memory reaches the limit."""


class AxisView(Struct, frozen=True, rename="camel"):
    """Usage, request and peak of a pod for one resource, and what its node has of it."""

    axis: str
    unit: str
    usage: float | None
    request: float
    peak: float | None
    capacity: float | None = None
    forecast: ForecastView | None = None


class PodResources(Struct, frozen=True, rename="camel"):
    pod: PodChip
    resources: tuple[AxisView, ...]


class TopPage(Struct, frozen=True, rename="camel"):
    """Pods that match a query with what they use, in the order of the query; `totals` counts all that match."""

    at: float
    pods: tuple[PodResources, ...]
    totals: PodTotals


class CurrentDecision(Struct, frozen=True, rename="camel"):
    """The decision about this pod now. `until` is when it is evaluated again."""

    kind: HistoryKind
    reason: str
    text: str
    at: float
    until: float | None = None
    placement_probability: float | None = None
    """How likely the pod fails because of where it is; null where the decision did not depend on it. The odds are the
    product of the ratios of `evidence`."""
    evidence: tuple[EvidencePart, ...] = ()


class WhyNot(Struct, frozen=True, rename="camel"):
    node: str
    reason: str


class PlacementView(Struct, frozen=True, rename="camel"):
    """Why the pod is on its node or moves to another, and why not to the others."""

    plan: str
    at: float
    planner: str
    why_here: tuple[str, ...]
    why_not: tuple[WhyNot, ...]
    kept: str = ""
    """`leaves it here: ...`: what a plan that was made just now says of a pod that it does not move."""


class PodView(Struct, frozen=True, rename="camel"):
    uid: str
    namespace: str
    name: str
    node: str | None
    phase: str
    ready: bool
    restarts: int
    created: float
    workload: str
    """Kind and name of the owner, such as `Deployment web-03`; empty if there is none."""
    scheduler: str
    managed: bool
    fixed: str
    happiness: Evidence | None
    resources: tuple[AxisView, ...]
    decision: CurrentDecision | None
    placement: PlacementView | None
    history: tuple[HistoryEntry, ...]
    """Newest first."""
    moved_by: str = ""
    """How the pod would be moved, and why in this way; empty while it may not be moved."""


class FoundPod(Struct, frozen=True, rename="camel"):
    """A pod that a search found. `happiness` is None if the pod has no liveness probe or no node."""

    uid: str
    namespace: str
    name: str
    node: str | None
    phase: str
    ready: bool
    workload: str
    happiness: float | None
    happy: bool
    fixed: str


class FoundPods(Struct, frozen=True, rename="camel"):
    """Unhappiest first."""

    pods: tuple[FoundPod, ...]
    total: int
    """Before `pods` is cut."""
    near: tuple[str, ...]
    """If none is found: similar names, as `namespace/name`."""
    note: str = ""
    """How a pod was found by another name than its own."""


class Decisions(Struct, frozen=True):
    decisions: tuple[HistoryEntry, ...]
    """Newest first."""


class Health(Struct, frozen=True):
    """`reasons` say what is missing if not ok."""

    ok: bool
    reasons: tuple[str, ...] = ()


class HealthSource(Protocol):
    def live(self) -> Health: ...

    def ready(self) -> Health: ...


class ClusterPages(Protocol):
    """One frozen state of the cluster. Called in threads."""

    def overview(self, query: OverviewQuery) -> Overview: ...

    def pods(self, query: PodsQuery) -> PodPage: ...

    def top(self, query: TopQuery) -> TopPage: ...


class ViewSource(Protocol):
    """Provides what pages show. Reads only."""

    async def cluster(self) -> ClusterPages:
        """The cluster as it is now. The web layer bounds how often it calls this."""
        ...

    async def series(self) -> Series:
        """Bounded: no more nodes and points than a chart can show."""
        ...

    async def calibration(self) -> CalibrationView: ...

    async def decisions(self, limit: int, before: int | None, waits: bool) -> tuple[HistoryEntry, ...]:
        """Newest first, ids below `before`; without `waits` entries of kind wait are left out."""
        ...

    async def pod(self, namespace: str, name: str) -> PodView | None: ...

    async def find_pods(self, wanted: FindQuery) -> FoundPods: ...

    async def usage(self, wanted: UsageQuery) -> UsageDocument | None: ...

    async def wait_for_change(self, after: int) -> int:
        """The state's version as soon as it is greater than `after` (at once for -1); may be cancelled."""
        ...
