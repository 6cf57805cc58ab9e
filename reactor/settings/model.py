"""The schema of the settings, the same for file and ConfigMap. Keys are camelCase, and every default is safe."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel

from reactor.settings.duration import DURATION_PATTERN, format_duration, parse_duration
from reactor.settings.selector import parse_selector
from reactor.settings.windows import Window, schedule_problem, time_zone_problem


def _selector(text: str) -> str:
    try:
        parse_selector(text)
    except ValueError as error:
        raise ValueError(
            f"{text!r} is not a label selector: {error}; write e.g. app=web,tier in (a,b),!canary"
        ) from None
    return text


def _name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", text):
        raise ValueError(f"{text!r} is not a namespace name; write at most 63 lowercase letters, digits or '-'")
    return text


def _url(text: str) -> str:
    """Without user and password: settings hold no credentials."""
    if text and not re.fullmatch(r"https?://([\w.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?(/\S*)?", text, re.ASCII):
        raise ValueError(f"{text!r} is not a URL; write http://HOST:PORT or https://HOST:PORT")
    return text


def _broker(text: str) -> str:
    """Without user and password: settings hold no credentials."""
    if text and not re.fullmatch(r"mqtts?://([\w.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?", text, re.ASCII):
        raise ValueError(f"{text!r} is not the address of a broker; write mqtt://HOST:PORT or mqtts://HOST:PORT")
    return text


def _topic(text: str) -> str:
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)*", text, re.ASCII) or len(text) > 200:
        raise ValueError(f"{text!r} is not a topic; write letters, digits, '.', '-' and '_' between slashes")
    return text


def _regex(text: str) -> str:
    """It is put into a query between double quotes."""
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    if not text or '"' in text or "\\" in text or "\n" in text:
        raise ValueError(f"{text!r} is empty or has quotes or backslashes; write e.g. kubelet|my-kubelets")
    return text


def _schedule(text: str) -> str:
    problem = schedule_problem(text)
    if problem:
        raise ValueError(problem)
    return text


def _time_zone(text: str) -> str:
    problem = time_zone_problem(text)
    if problem:
        raise ValueError(problem)
    return text


def _duration_schema(**bound: int) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"type": "number", **bound}, {"type": "string", "pattern": DURATION_PATTERN}]})


_READ, _WRITTEN = BeforeValidator(parse_duration), PlainSerializer(format_duration, when_used="json")

Seconds = Annotated[float, _READ, Field(ge=0), _WRITTEN, _duration_schema(minimum=0)]
"""A duration: `30s`, `5m`, `1h30m`, or a plain number of seconds."""

PositiveSeconds = Annotated[float, _READ, Field(gt=0), _WRITTEN, _duration_schema(exclusiveMinimum=0)]

Share = Annotated[float, Field(ge=0, le=1)]
Watts = Annotated[float, Field(ge=0)]
NamespaceName = Annotated[str, AfterValidator(_name)]


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )


class Mode(StrEnum):
    OBSERVE = "observe"
    BIND = "bind"
    ACT = "act"


class Managed(_Section):
    """Which pods Rematch manages."""

    namespaces: tuple[NamespaceName, ...] = ()
    """Empty means every namespace; kube-system is always excluded."""
    label_selector: Annotated[str, AfterValidator(_selector)] = ""
    """As kubectl's -l: `app=web,tier in (a,b),!canary`; empty selects all."""
    scheduler_name: str | None = None
    """Only pods with this spec.schedulerName; unset means any."""
    any_scheduler_namespaces: tuple[NamespaceName | Literal["*"], ...] = ()
    """Namespaces in which pods of other schedulers are moved, too; `*` means every namespace. Elsewhere only pods with
    `schedulerName` (above) are moved."""


class SteeringMode(StrEnum):
    AUTO = "auto"
    POLICY = "policy"
    BINDER = "binder"
    EXTENDER = "extender"
    NONE = "none"


class Placement(_Section):
    """How the replacement of a moved pod gets to the planned node."""

    steering: SteeringMode = SteeringMode.AUTO
    """For pods of other schedulers; Rematch binds those with `schedulerName` (above) in any case. `auto`, `policy`: a
    PlacementHint and a MutatingAdmissionPolicy make the pod's own scheduler prefer the planned node; where they do not
    work, the pods are not moved. `extender`: the pod's scheduler asks an extender of Rematch, which prefers the planned
    node (docs/extender.md); where no extender is asked, the pods are not moved. `binder`: they are not moved. `none`:
    they are moved without steering, and it is reported where the replacement landed."""
    pins_beside_autoscaler: bool = False
    """Allow a hard hint (a nodeSelector for the pod's life) as the second try in clusters with a node autoscaler."""


class TrustEvents(StrEnum):
    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class _Bounds(_Section):
    """What tenants may ask for by an annotation."""

    min: float
    max: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min is {self.min:g}, above max, which is {self.max:g}; swap them")
        return self

    def clamp(self, value: float) -> float:
        return min(max(value, self.min), self.max)


class AnnotationBounds(_Bounds):
    """What tenants may ask for by the annotation `rematch.io/threshold` of a pod or namespace."""

    min: Share = 0.0
    """A lower threshold counts as this one."""
    max: Share = 0.99
    """A higher threshold counts as this one."""


class Happiness(_Section):
    threshold: Share = 0.9
    """A pod below it is unhappy. A pod's annotation has priority, then that of its namespace, then this."""
    namespaces: dict[NamespaceName, Share] = {}
    """Thresholds by namespace; a namespace's own annotation has priority."""
    half_life: PositiveSeconds = 300.0
    """After this time an observed probe counts half, or after `halfLifeProbes` probes if that is sooner."""
    half_life_probes: Annotated[float, Field(gt=0)] = 8.0
    """After this many probes of its pod an observed probe counts half."""
    goodwill: Annotated[float, Field(ge=0)] = 5.0
    """Pseudo-probes that count as successes of every pod (m in Pr = (m+S)/(m+S+F))."""
    annotation_bounds: AnnotationBounds = AnnotationBounds()
    trust_events: TrustEvents = TrustEvents.AUTO
    """Whether Events alone can start a rematch. Anyone who may create Events in a namespace can write some about its
    pods. Otherwise the pod's status, the kubelet's counters or pressure on the node must agree. `auto`: only while the
    policy `rematch-events` lets nobody but kubelets write them. `always`: also without it. `never`: not even then."""


class Triggers(_Section):
    evaluation_interval: PositiveSeconds = 10.0
    """How often every managed pod is evaluated again."""
    rematch_interval: Seconds = 0.0
    """Rematch at this interval whatever the happiness (KSE's cycle); 0 is off."""


class DecisionTrigger(StrEnum):
    REACTIVE = "reactive"
    PREDICTIVE = "predictive"


class Decision(_Section):
    trigger: DecisionTrigger = DecisionTrigger.REACTIVE
    """`reactive`: a rematch starts when probes fail. `predictive`: also before that, when a node is forecast to be
    asked for more CPU than it has and a move pays; wrong forecasts are counted, and stop it when they prevail."""
    minimum_failures: Annotated[float, Field(ge=0)] = 2.0
    """A pod needs this many failed probes since its node was relieved before it can start a rematch."""
    placement_probability: Share = 0.85
    """A pod starts a rematch only when it is at least this likely that it fails because of where it is."""
    cross_namespace_annotations: bool = False
    """Move pods of other namespaces, too, for a pod that only its own or its namespace's annotation makes unhappy."""
    cooldown: Seconds = 60.0
    """A pod that was moved is not moved again for this long; doubled each time the move did not help."""
    settle: Seconds = 60.0
    """After a pod was moved away from a node, no other pod leaves the node for this long."""
    node_pressure: Share = 0.8
    """From this share of CPU or memory in use a node counts as crowded: then Events alone are believed, and what fails
    there says nothing about the app."""


class Scope(StrEnum):
    CLUSTER = "cluster"
    AFFECTED = "affected"
    UNHAPPY = "unhappy"


class Preference(StrEnum):
    NEAREST = "nearest"
    CROWD = "crowd"


class Planner(_Section):
    name: str = "stable"
    """An installed planner (entry-point group rematch.planners)."""
    parameters: dict[str, Any] = {}
    """Parameters of this planner, such as `overload: 1.1` for refine or `dumping: allow` for stable. The settings below
    are common to all planners."""
    deadline: PositiveSeconds = 60.0
    """A plan that is not made within this time is given up, and tried again later. Pending pods are placed by a planner
    of Rematch's own and do not wait for it."""
    allow_unsafe: bool = False
    """Let a planner act that waives a promise, such as `stable-paper`."""
    scope: Scope = Scope.CLUSTER
    """`cluster`: every managed pod may get another node. `unhappy`: only unhappy pods may. `affected`: the fewest moves
    that make the unhappy pods happy; happy pods move only to make room (only `stable` supports this, other planners
    treat it as `unhappy`)."""
    inertia: Annotated[float, Field(ge=0)] = 0.5
    """How much nearer (in normalised distance, 0 to 1.4) another node must be before a happy pod leaves its own."""
    headroom: Annotated[float, Field(ge=0, lt=1)] = 0.15
    """Share of a node that peaks leave free; reduced step by step when the pods do not fit otherwise."""
    soft_weight: Annotated[float, Field(ge=0)] = 0.05
    """What breaking all soft constraints of a pod (preferred affinity, ScheduleAnyway) adds to a distance; 0 is off."""
    max_moves: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of moves of running pods in one plan."""
    max_moves_per_workload: Annotated[int, Field(ge=1)] | None = None
    """Most moves of the replicas of one workload in one plan."""
    max_moves_per_node: Annotated[int, Field(ge=1)] | None = None
    """Most running pods that leave or enter one node in one plan, counted together."""
    max_moves_per_namespace: Annotated[int, Field(ge=1)] | None = None
    """Most moves in one namespace in one plan."""
    preference: Preference = Preference.CROWD
    """Which of the nodes that cure a pod it gets. `crowd`: the one where it and the pods there are expected to fail
    least; of those that are about as good, the nearest fit. `nearest`: the nearest fit that keeps its headroom, as in
    STABLE."""
    horizon: PositiveSeconds = 1800.0
    """Benefit is expected over this time: a move for an unhappiness that lasts longer is worth more."""
    required_ratio: Annotated[float, Field(ge=0)] = 2.0
    """A move must be expected to save this many times its price, in failing pod-minutes."""
    move_price: Annotated[float, Field(ge=0)] = 1.0
    """Pod-minutes that every move costs, on top of what it disrupts: cold caches, risk, attention."""


class StrategyName(StrEnum):
    SCALE_SURGE = "scaleSurge"
    RELEASE_SURGE = "releaseSurge"
    EVICT = "evict"


class ClusterLimits(_Section):
    per_10_minutes: Annotated[int, Field(ge=1)] = 20
    """How many moves may start in 10 minutes."""
    per_day: Annotated[int, Field(ge=1)] = 300
    """How many moves may start in 24 hours."""


class NamespaceLimits(_Section):
    per_10_minutes: Annotated[int, Field(ge=1)] = 10
    """The same for the pods of one namespace."""
    per_day: Annotated[int, Field(ge=1)] = 100
    """The same for the pods of one namespace."""


class WorkloadLimits(_Section):
    per_10_minutes: Annotated[int, Field(ge=1)] = 4
    """The same for the replicas of one workload."""
    per_day: Annotated[int, Field(ge=1)] = 20
    """The same for the replicas of one workload."""


class Limits(_Section):
    """Moves in time, for the whole cluster and for each namespace and workload of it."""

    cluster: ClusterLimits = ClusterLimits()
    namespace: NamespaceLimits = NamespaceLimits()
    workload: WorkloadLimits = WorkloadLimits()


class MaintenanceWindow(_Section):
    """When moves may start. Pods and namespaces narrow it by the annotation `rematch.io/window`."""

    schedule: Annotated[str, AfterValidator(_schedule)]
    """When the window opens, as in cron: `0 2 * * 1-5`."""
    duration: PositiveSeconds
    """How long it stays open. A move that has started goes on to its end."""
    time_zone: Annotated[str, AfterValidator(_time_zone)] = "UTC"
    """A name of the tz database, such as `Europe/Berlin`."""

    @property
    def window(self) -> Window:
        return Window(self.schedule, self.duration, self.time_zone)


class Brake(_Section):
    """When moving stops by itself. A brake is kept across restarts; `rematch resume` releases it earlier."""

    duration: PositiveSeconds = 1800.0
    """How long a brake holds after its cause was last seen."""
    moves_without_effect: Annotated[int, Field(ge=1)] = 3
    """This many moves that did not help, in one namespace and within `duration`, brake the namespace; in this many
    namespaces, they brake the cluster."""
    not_ready_nodes: Share = 0.2
    """This share of the nodes (at least two) not Ready brakes the cluster."""
    failed_writes: Annotated[int, Field(ge=1)] = 5
    """This many moves that failed by errors of the API server within 10 minutes brake the cluster."""
    rollouts: Share = 0.3
    """This share of the Deployments (at least five) rolling out at once brakes the cluster."""


class Execution(_Section):
    strategies: tuple[StrategyName, ...] = (StrategyName.SCALE_SURGE, StrategyName.RELEASE_SURGE, StrategyName.EVICT)
    """The ways of moving a pod that are allowed, the preferred one first. A surge starts the replacement before the old
    pod ends."""
    evict_single_replicas: bool = False
    """Evict the pod of a workload with one replica where no surge is possible. Its requests fail meanwhile."""
    max_moves_in_flight: Annotated[int, Field(ge=1)] = 1
    """Moves in flight at once in the cluster."""
    max_moves_in_flight_per_namespace: Annotated[int, Field(ge=1)] = 2
    """Moves in flight at once in one namespace."""
    max_moves_in_flight_per_workload: Annotated[int, Field(ge=1)] = 1
    """Replicas of one workload that move at once."""
    limits: Limits = Limits()
    windows: tuple[MaintenanceWindow, ...] = ()
    """Moves start only while one of these is open; without any, at all times."""
    max_plan_age: PositiveSeconds = 600.0
    """Moves of a plan that have not started after this time are dropped."""
    brake: Brake = Brake()
    ready_deadline: PositiveSeconds = 180.0
    """A replacement that is not Ready after this time brakes its namespace until it is Ready or gone; a surge is taken
    back."""
    reservation: PositiveSeconds = 120.0
    """How long the planned node is reserved for the replacement."""
    drain_delay: Seconds = 5.0
    """Release surge: how long the old pod goes on after it is no endpoint of a Service any more, before it is ended."""
    allow_local_data: bool = False
    """Move pods with emptyDir or hostPath volumes; their data is lost. Not with generic ephemeral volumes."""


class Queries(_Section):
    """PromQL instant queries. An empty string turns a query off.

    `$namespaces` stands for a matcher on the label `namespace`; a query that has it is split when there are many pods.
    Both cAdvisor and /metrics/resource may report a container: the larger value counts, not the sum. Windows are 2
    minutes because cAdvisor samples a container only every 11 to 19 s, and because nothing older than that is fresh.
    """

    pod_cpu: str = (
        "sum by (namespace, pod) (max by (namespace, pod, container) (rate(container_cpu_usage_seconds_total"
        '{container!="",container!="POD",pod!="",$namespaces}[2m])))'
    )
    """Cores by namespace and pod, from cAdvisor or /metrics/resource."""
    pod_memory: str = (
        "sum by (namespace, pod) (max by (namespace, pod, container) (last_over_time(container_memory_working_set_bytes"
        '{container!="",container!="POD",pod!="",$namespaces}[2m])))'
    )
    """Bytes by namespace and pod, from cAdvisor or /metrics/resource."""
    node_cpu: str = (
        "max by (node, kubernetes_node, nodename, instance) (rate(node_cpu_usage_seconds_total[2m]))"
        " or on () max by (node, kubernetes_node, nodename, instance)"
        ' (rate(container_cpu_usage_seconds_total{id="/"}[2m]))'
        " or on () sum by (node, kubernetes_node, nodename, instance)"
        ' (rate(node_cpu_seconds_total{mode!~"idle|iowait|steal|guest|guest_nice"}[2m]))'
    )
    """Cores by node, from the first of /metrics/resource, cAdvisor and node-exporter that has any."""
    node_memory: str = (
        "max by (node, kubernetes_node, nodename, instance) (last_over_time(node_memory_working_set_bytes[2m]))"
        " or on () max by (node, kubernetes_node, nodename, instance)"
        ' (last_over_time(container_memory_working_set_bytes{id="/"}[2m]))'
        " or on () max by (node, kubernetes_node, nodename, instance)"
        " (node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes)"
    )
    """Bytes by node, from the first of the same sources that has any."""
    probes: str = 'prober_probe_total{probe_type="Liveness",$kubelets,$namespaces}'
    """The kubelets' exact counters of liveness probes (/metrics/probes). `$kubelets` stands for a matcher of
    `kubeletJobs`: the series of another job may be anybody's."""
    throttled: str = (
        "sum by (namespace, pod) (rate(container_cpu_cfs_throttled_periods_total"
        '{container!="",$namespaces}[2m]))'
        " / (sum by (namespace, pod) (rate(container_cpu_cfs_periods_total"
        '{container!="",$namespaces}[2m])) > 0)'
    )
    """Share of the scheduling periods in which a pod was throttled by its CPU limit."""
    pod_cpu_pressure: str = (
        'max by (namespace, pod) (rate(container_pressure_cpu_waiting_seconds_total{container!="",$namespaces}[2m]))'
    )
    """Share of the time in which a task of the pod waited for a CPU: PSI, from cAdvisor where nodes have cgroup v2."""
    pod_network: str = (
        '8 * sum by (namespace, pod) (rate(container_network_receive_bytes_total{pod!="",$namespaces}[2m])'
        ' + rate(container_network_transmit_bytes_total{pod!="",$namespaces}[2m]))'
    )
    """Bits per second of a pod."""
    pod_disk: str = (
        'sum by (namespace, pod) (rate(container_fs_reads_bytes_total{pod!="",container!="",$namespaces}[2m])'
        ' + rate(container_fs_writes_bytes_total{pod!="",container!="",$namespaces}[2m]))'
    )
    """Bytes per second that a pod reads and writes."""
    node_disk: str = (
        "sum by (node, kubernetes_node, nodename, instance) (rate(node_disk_read_bytes_total"
        '{device!~"dm-.*|loop.*|md.*|ram.*|sr.*"}[2m]) + rate(node_disk_written_bytes_total'
        '{device!~"dm-.*|loop.*|md.*|ram.*|sr.*"}[2m]))'
    )
    """Bytes per second that a node reads and writes, from node-exporter: its pods and itself."""
    node_network: str = (
        "8 * sum by (node, kubernetes_node, nodename, instance) (rate(node_network_receive_bytes_total"
        '{device!~"lo|veth.*|cali.*|cni.*|docker.*|flannel.*|br-.*"}[2m]) + rate(node_network_transmit_bytes_total'
        '{device!~"lo|veth.*|cali.*|cni.*|docker.*|flannel.*|br-.*"}[2m]))'
        " or on () 8 * sum by (node, kubernetes_node, nodename, instance) (rate(container_network_receive_bytes_total"
        '{id="/",interface!~"lo|veth.*|cali.*|cni.*|docker.*|flannel.*|br-.*"}[2m])'
        " + rate(container_network_transmit_bytes_total"
        '{id="/",interface!~"lo|veth.*|cali.*|cni.*|docker.*|flannel.*|br-.*"}[2m]))'
    )
    """Bits per second over a node's links, from node-exporter, else cAdvisor: its pods' traffic and its own."""
    node_bandwidth: str = (
        "8 * max by (node, kubernetes_node, nodename, instance)"
        ' (node_network_speed_bytes{device!~"lo|veth.*|cali.*|cni.*|docker.*|flannel.*|br-.*"} > 0)'
    )
    """Bits per second of a node's fastest link."""
    availability: str = ""
    """Share of requests that succeeded; shown on the dashboard."""
    latency_p95: str = ""
    """95th percentile of the response time in seconds; shown on the dashboard."""


class Prometheus(_Section):
    url: Annotated[str, AfterValidator(_url)] = ""
    """Empty: Prometheus is not used. Redirects are not followed. A bearer token and a certificate authority are flags
    of the process: `--prometheus-token-file`, `--prometheus-token-host`, `--prometheus-ca-file`."""
    timeout: PositiveSeconds = 10.0
    """Deadline of one query, including connection, retries and body."""
    interval: PositiveSeconds = 15.0
    """Pause between two rounds of queries."""
    kubelet_jobs: Annotated[str, AfterValidator(_regex)] = "kubelet|kubernetes-nodes.*"
    """Regular expression for the label `job` of the series that come from kubelets."""
    series_per_query: Annotated[int, Field(ge=100)] = 20000
    """Above this many pods a per-pod query is split by namespace."""
    queries: Queries = Queries()


class MetricsApi(_Section):
    enabled: bool = True
    """Query metrics.k8s.io (metrics-server) for what Prometheus does not have."""
    interval: PositiveSeconds = 15.0
    """Pause between two rounds."""
    timeout: PositiveSeconds = 10.0
    """Deadline of one list."""


class Sources(_Section):
    names: tuple[str, ...] = ()
    """Installed sources (entry-point group rematch.sources), each an axis of the plans: users' own metrics."""
    interval: PositiveSeconds = 30.0
    """Pause between two rounds."""
    timeout: PositiveSeconds = 10.0
    """Deadline of one source."""


class Metrics(_Section):
    prometheus: Prometheus = Prometheus()
    metrics_api: MetricsApi = MetricsApi()
    """metrics.k8s.io: the second source, used for what Prometheus does not have."""
    sources: Sources = Sources()
    freshness: PositiveSeconds = 120.0
    """A sample older than this is stale and not used."""
    peak_window: PositiveSeconds = 900.0
    """Length of the usage history that peaks are estimated from."""


class HistoryPeak(StrEnum):
    MAX = "max"
    P99 = "p99"
    P95 = "p95"


class History(_Section):
    keep: PositiveSeconds = 7 * 24 * 3600.0
    """Finished records older than this are deleted."""
    max_bytes: Annotated[int, Field(ge=16 * 2**20)] = 800 * 2**20
    """Size of the store's file in bytes. Before it grows beyond this, the oldest usage is deleted, then the oldest
    plans and decisions. Its volume needs a tenth and 64 MiB more: the default is for 1 GiB."""
    window: Annotated[PositiveSeconds, Field(ge=3600)] = 7 * 24 * 3600.0
    """Needs are estimated from the usage of this long."""
    minimum: PositiveSeconds = 24 * 3600.0
    """Hours with measurements that a pod, or else its workload, needs before its history counts. Until then needs come
    from `metrics.peakWindow` alone."""
    peak: HistoryPeak = HistoryPeak.P99
    """The peak of a pod that nodes have room for: the highest usage in the window, or what 99 % or 95 % of the minutes
    stay below. Never less than it uses now, never more than its CPU limit."""
    rank_by_idle_cpu: bool = False
    """Nodes rank pods by their CPU while unloaded (what 95 % of the minutes are above), as in STABLE, instead of by
    mean CPU."""

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.minimum > self.window:
            window, minimum = format_duration(self.window), format_duration(self.minimum)
            raise ValueError(f"minimum is {minimum}, above window, which is {window}: the history would never count")
        return self


class PeakSource(StrEnum):
    BOOSTED_PEAK = "boosted-peak"
    PERCENTILE = "percentile"
    N_SIGMA = "n-sigma"
    SIGMA_OR_PERCENTILE = "sigma-or-percentile"
    HISTORY = "history"


FORECAST_HORIZONS = (300.0, 900.0, 3600.0)
"""Seconds. Fixed, so that a trained model and what was learned of each series outlive a change of the settings."""


def _horizon(seconds: float) -> float:
    if seconds not in FORECAST_HORIZONS:
        raise ValueError(f"{format_duration(seconds)} is not forecast; write 5m, 15m or 1h")
    return seconds


HorizonSeconds = Annotated[PositiveSeconds, AfterValidator(_horizon)]
Coverage = Annotated[float, Field(ge=0.5, le=0.99)]


class CoverageBounds(_Bounds):
    """What tenants may ask for by the annotation `rematch.io/peak-coverage` of a pod."""

    min: Coverage = 0.8
    """A lower coverage counts as this one."""
    max: Coverage = 0.99
    """A higher coverage counts as this one."""


class Training(_Section):
    """The boosted models are trained in a process of their own, with the lowest priority and one thread."""

    every: Seconds = 24 * 3600.0
    """At most so often; 0 is never."""
    minimum: Annotated[PositiveSeconds, Field(ge=6 * 3600)] = 24 * 3600.0
    """Usage that must be recorded before the first training."""
    seconds: Annotated[PositiveSeconds, Field(ge=10, le=600)] = 60.0
    """Most CPU time of one training."""
    mebibytes: Annotated[int, Field(ge=512)] = 1024
    """Most memory of one training."""


class Forecasting(_Section):
    enabled: bool = True
    """Forecast the usage of pods, workloads and nodes every 5 minutes from the recorded history."""
    estimator: PeakSource = PeakSource.BOOSTED_PEAK
    """What the peak of a pod is, that nodes have room for: a forecast by this estimator, calibrated for each pod, or
    with `history` the peak of the past (`history.peak`). A pod's annotation `rematch.io/peak-estimator: history` has
    priority. Until the forecast of a pod is calibrated, the larger of both counts."""
    horizon: HorizonSeconds = 3600.0
    """The peak is forecast until then: 5m, 15m or 1h. A pod's annotation `rematch.io/peak-horizon` has priority."""
    coverage: Coverage = 0.95
    """The share of such times in which a pod shall stay below its peak. A pod's annotation `rematch.io/peak-coverage`
    has priority, within `annotationBounds`."""
    annotation_bounds: CoverageBounds = CoverageBounds()
    training: Training = Training()
    exported_workloads: Annotated[int, Field(ge=0, le=20000)] = 1000
    """Workloads whose current and predicted usage is in /metrics; the largest ones where there are more."""


class NodeWatts(_Section):
    idle: Watts
    """Without load."""
    full: Watts
    """With all CPU in use."""


class Energy(_Section):
    """What nodes draw: linear in their CPU. Plans and the dashboard show it; nothing is decided by it."""

    idle_watts_per_core: Watts = 0.74
    """Of nodes without an annotation and without a class: the average of the processors of a large cloud."""
    full_watts_per_core: Watts = 3.5
    """The same with all CPU in use."""
    class_label: str = "node.kubernetes.io/instance-type"
    """The label of a node that names its class."""
    classes: dict[str, NodeWatts] = {}
    """Watts of a whole node by class, `{m5.xlarge: {idle: 8, full: 30}}`; a node's annotations have priority."""


class Latency(_Section):
    """Round trips that latency meters (`rematch latency-client`) publish, for the planner `latency`."""

    broker: Annotated[str, AfterValidator(_broker)] = ""
    """`mqtt://HOST:PORT` or `mqtts://HOST:PORT`; empty is off. Credentials and certificates are flags of the process:
    `--broker-credentials`, `--broker-host`, `--broker-ca-file`."""
    topic: Annotated[str, AfterValidator(_topic)] = "rematch/latency"
    """Meters publish to `TOPIC/NAMESPACE`, and a message there is about pods of this namespace only."""
    namespaces: tuple[NamespaceName, ...] = ()
    """Whose pods have a role and whose meters are listened to; empty means every namespace."""
    target: Annotated[str, AfterValidator(_selector)] = "rematch.io/latency=target"
    """Label selector of the applications that move to nearer nodes."""
    probe: Annotated[str, AfterValidator(_selector)] = "rematch.io/latency=probe"
    """Label selector of the echo servers that find nearer nodes."""
    freshness: PositiveSeconds = 30.0
    """An older measurement does not count."""


class Settings(_Section):
    api_version: Literal["rematch/v1alpha1"] = "rematch/v1alpha1"
    kind: Literal["Settings"] = "Settings"
    mode: Mode = Mode.OBSERVE
    """`observe` plans, records and writes Events, and evicts and binds nothing. `bind` also binds pending pods, and
    evicts nothing: the emergency stop. `act` carries the plans out."""
    scheduler_name: str = "rematch"
    """Rematch binds pods with this spec.schedulerName, and moves them; for others see
    `managed.anySchedulerNamespaces`."""
    managed: Managed = Managed()
    placement: Placement = Placement()
    happiness: Happiness = Happiness()
    triggers: Triggers = Triggers()
    decision: Decision = Decision()
    planner: Planner = Planner()
    execution: Execution = Execution()
    metrics: Metrics = Metrics()
    history: History = History()
    forecasting: Forecasting = Forecasting()
    latency: Latency = Latency()
    energy: Energy = Energy()
