"""The schema of the settings, the same for file and ConfigMap. Keys are camelCase, and every default is safe."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

from reactor.settings.duration import DURATION_PATTERN, format_duration, parse_duration
from reactor.settings.selector import parse_selector


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
    if text and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text):
        raise ValueError(f"{text!r} is not a URL; write http://HOST:PORT or https://HOST:PORT")
    return text


def _duration_schema(**bound: int) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"type": "number", **bound}, {"type": "string", "pattern": DURATION_PATTERN}]})


_READ, _WRITTEN = BeforeValidator(parse_duration), PlainSerializer(format_duration, when_used="json")

Seconds = Annotated[float, _READ, Field(ge=0), _WRITTEN, _duration_schema(minimum=0)]
"""A duration: `30s`, `5m`, `1h30m`, or a plain number of seconds."""

PositiveSeconds = Annotated[float, _READ, Field(gt=0), _WRITTEN, _duration_schema(exclusiveMinimum=0)]

Share = Annotated[float, Field(ge=0, le=1)]
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
    ACT = "act"


class Managed(_Section):
    """The pods that Rematch manages."""

    namespaces: tuple[NamespaceName, ...] = ()
    """Empty means every namespace. Pods in kube-system are never moved."""
    label_selector: Annotated[str, AfterValidator(_selector)] = ""
    """As kubectl's -l: `app=web,tier in (a,b),!canary`; empty selects all."""
    scheduler_name: str | None = None
    """Only pods with this spec.schedulerName; unset means any."""


class Happiness(_Section):
    threshold: Share = 0.9
    """A pod with a lower happiness is unhappy. An annotation of the pod takes precedence, then one of its namespace."""
    namespaces: dict[NamespaceName, Share] = {}
    """Thresholds by namespace; an annotation of the namespace takes precedence."""
    half_life: PositiveSeconds = 300.0
    """After this time an observed probe counts half."""
    goodwill: Annotated[float, Field(ge=0)] = 5.0
    """Successful pseudo-probes that every pod starts with (m in Pr = (m+S)/(m+S+F))."""


class Triggers(_Section):
    evaluation_interval: PositiveSeconds = 10.0
    """How often every managed pod is evaluated."""
    rematch_interval: Seconds = 0.0
    """Rematch at this interval whatever the happiness (KSE's cycle); 0 is off."""


class Decision(_Section):
    minimum_failures: Annotated[float, Field(ge=0)] = 2.0
    """Decayed failed probes that a pod needs before it can cause a rematch."""
    cooldown: Seconds = 60.0
    """A pod that was moved is not moved again for this time; doubled each time the move did not help."""
    settle: Seconds = 60.0
    """After a pod was moved away from a node, no other pod leaves the node for this time."""
    node_pressure: Share = 0.8
    """Usage of CPU or memory from which a node counts as crowded, so that placement can be the cause."""
    clearly_better: Share = 0.25
    """Placement can also be the cause when another feasible node is less used by at least this share of capacity."""


class Scope(StrEnum):
    CLUSTER = "cluster"
    AFFECTED = "affected"
    UNHAPPY = "unhappy"


class Planner(_Section):
    name: str = "stable"
    """An installed planner (entry-point group rematch.planners)."""
    parameters: dict[str, Any] = {}
    """Parameters of this planner, such as `overload: 1.1` for refine or `dumping: allow` for stable."""
    allow_unsafe: bool = False
    """Allow a planner to act that waives a promise, such as one that follows a published algorithm exactly."""
    scope: Scope = Scope.CLUSTER
    """`cluster` may move every managed pod, `unhappy` only the unhappy ones. `affected` looks for the fewest moves that
    make the unhappy pods happy, and moves happy ones where that makes room (only `stable`; for the other planners it
    is the same as `unhappy`)."""
    inertia: Annotated[float, Field(ge=0)] = 0.5
    """How much nearer (in normalised distance, 0 to 1.4) another node must be before a happy pod leaves its node."""
    headroom: Annotated[float, Field(ge=0, lt=1)] = 0.15
    """Share of a node that peaks leave free; reduced step by step when the pods do not fit otherwise."""
    soft_weight: Annotated[float, Field(ge=0)] = 0.05
    """Added to a distance when all soft constraints (preferred affinity, ScheduleAnyway) are broken; 0 is off."""
    max_moves: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of moves of running pods in one plan."""
    max_moves_per_workload: Annotated[int, Field(ge=1)] | None = None
    """Maximum per workload."""
    max_moves_per_node: Annotated[int, Field(ge=1)] | None = None
    """Maximum per node, counting pods that leave and pods that enter it."""
    max_moves_per_namespace: Annotated[int, Field(ge=1)] | None = None
    """Maximum per namespace."""


class Execution(_Section):
    max_moves_in_flight: Annotated[int, Field(ge=1)] = 1
    """Maximum number of moves at the same time; never two of one workload."""
    ready_deadline: PositiveSeconds = 180.0
    """A replacement that is not Ready after this time stops all further moves until it is Ready or gone."""
    reservation: PositiveSeconds = 120.0
    """How long the planned node is reserved for the replacement."""
    allow_local_data: bool = False
    """Move pods with emptyDir or hostPath volumes; their data is lost."""


class Queries(_Section):
    """PromQL instant queries. An empty string turns a query off.

    `$namespaces` is replaced by a matcher on the label `namespace`; a query with it is split when there are many pods.
    A container may be measured by cAdvisor and by /metrics/resource: the larger value counts, not the sum. Windows are
    2 minutes because cAdvisor measures a container only every 11 to 19 s, and because older samples are not fresh.
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
    """Cores by node, from the first of /metrics/resource, cAdvisor and node-exporter that has samples."""
    node_memory: str = (
        "max by (node, kubernetes_node, nodename, instance) (last_over_time(node_memory_working_set_bytes[2m]))"
        " or on () max by (node, kubernetes_node, nodename, instance)"
        ' (last_over_time(container_memory_working_set_bytes{id="/"}[2m]))'
        " or on () max by (node, kubernetes_node, nodename, instance)"
        " (node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes)"
    )
    """Bytes by node, from the same sources."""
    probes: str = 'prober_probe_total{probe_type="Liveness",$namespaces}'
    """The kubelets' exact counters of liveness probes (/metrics/probes)."""
    throttled: str = (
        "sum by (namespace, pod) (rate(container_cpu_cfs_throttled_periods_total"
        '{container!="",$namespaces}[2m]))'
        " / (sum by (namespace, pod) (rate(container_cpu_cfs_periods_total"
        '{container!="",$namespaces}[2m])) > 0)'
    )
    """Share of the scheduling periods in which a pod was throttled by its CPU limit."""
    pod_network: str = (
        '8 * sum by (namespace, pod) (rate(container_network_receive_bytes_total{pod!="",$namespaces}[2m])'
        ' + rate(container_network_transmit_bytes_total{pod!="",$namespaces}[2m]))'
    )
    """Bits per second of a pod; queried only for planners that use the network."""
    node_bandwidth: str = (
        "8 * max by (node, kubernetes_node, nodename, instance)"
        ' (node_network_speed_bytes{device!~"lo|veth.*|cali.*|cni.*|docker.*|flannel.*|br-.*"} > 0)'
    )
    """Bits per second of a node's fastest link; queried only for planners that use the network."""
    availability: str = ""
    """Share of requests that succeeded; shown on the dashboard."""
    latency_p95: str = ""
    """95th percentile of the response time in seconds; shown on the dashboard."""


class Prometheus(_Section):
    url: Annotated[str, AfterValidator(_url)] = ""
    """Empty: Prometheus is not used."""
    timeout: PositiveSeconds = 10.0
    """Deadline of one query, including connection and body."""
    interval: PositiveSeconds = 15.0
    """Pause between two rounds of queries."""
    token_file: str = ""
    """File with a bearer token; it is read for every query."""
    ca_file: str = ""
    """File with the certificate authority of an https URL, if it is not a public one."""
    series_per_query: Annotated[int, Field(ge=100)] = 20000
    """Above this many pods a per-pod query is split by namespace."""
    queries: Queries = Queries()


class MetricsApi(_Section):
    enabled: bool = True
    """Use metrics.k8s.io (metrics-server) for pods and nodes that Prometheus has no samples of."""
    interval: PositiveSeconds = 15.0
    """Pause between two rounds."""
    timeout: PositiveSeconds = 10.0
    """Deadline of one list."""


class Metrics(_Section):
    prometheus: Prometheus = Prometheus()
    metrics_api: MetricsApi = MetricsApi()
    """metrics.k8s.io: the second source, used where Prometheus has no samples."""
    freshness: PositiveSeconds = 120.0
    """A sample older than this is stale and not used."""
    peak_window: PositiveSeconds = 900.0
    """Length of the usage history from which a peak is estimated."""


class History(_Section):
    keep: PositiveSeconds = 7 * 24 * 3600.0
    """Samples and finished records older than this are deleted."""


class Settings(_Section):
    api_version: Literal["rematch/v1alpha1"] = "rematch/v1alpha1"
    kind: Literal["Settings"] = "Settings"
    mode: Mode = Mode.OBSERVE
    """`observe` plans and records but changes nothing; `act` carries the plans out."""
    scheduler_name: str = "rematch"
    """Pods with this spec.schedulerName are bound by Rematch. For now only they are moved."""
    managed: Managed = Managed()
    happiness: Happiness = Happiness()
    triggers: Triggers = Triggers()
    decision: Decision = Decision()
    planner: Planner = Planner()
    execution: Execution = Execution()
    metrics: Metrics = Metrics()
    history: History = History()
