"""The settings schema: one for the file and the ConfigMap, camelCase keys, every default safe."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from reactor.settings.duration import parse_duration

Seconds = Annotated[float, BeforeValidator(parse_duration), Field(ge=0)]
"""A duration: `30s`, `5m`, `1h30m`, or a plain number of seconds."""

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class Mode(StrEnum):
    OBSERVE = "observe"
    ACT = "act"


class Managed(_Section):
    """Which pods we look after."""

    namespaces: tuple[str, ...] = ()
    """Empty means every namespace; kube-system is never touched."""
    label_selector: str = ""
    """As kubectl's -l: `app=web,tier in (a,b),!canary`; empty selects all."""
    scheduler_name: str | None = None
    """Only pods with this spec.schedulerName; unset means any."""


class Happiness(_Section):
    threshold: Share = 0.8
    """A pod below it is unhappy. A pod's annotation wins over its namespace's, that over this."""
    namespaces: dict[str, Share] = {}
    """Thresholds by namespace; a namespace's own annotation wins."""
    half_life: Annotated[Seconds, Field(gt=0)] = 300.0
    """After this long an observed probe counts half."""
    goodwill: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0
    """Pseudo-probes of success every pod starts with (m in Pr = (m+S)/(m+S+F))."""


class Triggers(_Section):
    evaluation_interval: Annotated[Seconds, Field(gt=0)] = 10.0
    """How often every managed pod is looked at again."""
    rematch_interval: Seconds = 0.0
    """Rematch every so often whatever the happiness (KSE's cycle); 0 is off."""


class Decision(_Section):
    minimum_failures: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 2.0
    """Decayed failed probes needed before a pod counts as evidence for a rematch."""
    cooldown: Seconds = 60.0
    """A workload that was just moved is left alone for so long; doubled each time the move did not help."""
    node_pressure: Share = 0.8
    """Use of CPU or memory from which a node counts as crowded, so placement can be the cause."""
    clearly_better: Share = 0.25
    """Or: another feasible node is less used by at least this share of capacity."""


class Scope(StrEnum):
    CLUSTER = "cluster"
    UNHAPPY = "unhappy"


class Planner(_Section):
    name: str = "stable"
    scope: Scope = Scope.CLUSTER
    inertia: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.2
    headroom: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.15
    max_moves: Annotated[int, Field(ge=1)] | None = None


class Execution(_Section):
    max_moves_in_flight: Annotated[int, Field(ge=1)] = 1
    ready_deadline: Annotated[Seconds, Field(gt=0)] = 180.0
    """A replacement that is not Ready by then stops all further moves until it is Ready or gone."""
    reservation: Annotated[Seconds, Field(gt=0)] = 120.0
    """How long the planned node is held for the replacement."""
    allow_local_data: bool = False
    """Move pods with emptyDir or hostPath volumes; their data does not come along."""


class Queries(_Section):
    """PromQL instant queries. An empty string turns a query off."""

    pod_cpu: str = (
        'sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{container!="",container!="POD",pod!=""}[2m]))'
    )
    pod_memory: str = (
        'sum by (namespace, pod) (container_memory_working_set_bytes{container!="",container!="POD",pod!=""})'
    )
    node_cpu: str = (
        'sum by (node) (rate(node_cpu_usage_seconds_total[2m]))'
        ' or sum by (instance) (rate(node_cpu_seconds_total{mode!~"idle|iowait|steal"}[2m]))'
    )
    node_memory: str = (
        "max by (node) (node_memory_working_set_bytes)"
        " or max by (instance) (node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes)"
    )
    probes: str = 'prober_probe_total{probe_type="Liveness"}'
    throttled: str = (
        'sum by (namespace, pod) (rate(container_cpu_cfs_throttled_periods_total{container!=""}[2m]))'
        ' / sum by (namespace, pod) (rate(container_cpu_cfs_periods_total{container!=""}[2m]) > 0)'
    )
    availability: str = ""
    """Share of requests that succeeded; shown on the dashboard."""
    latency_p95: str = ""
    """95th percentile of the response time in seconds; shown on the dashboard."""


class Prometheus(_Section):
    url: str = ""
    """Empty: Prometheus is not asked."""
    timeout: Annotated[Seconds, Field(gt=0)] = 10.0
    """Deadline of one whole query, connection, retries and body together."""
    interval: Annotated[Seconds, Field(gt=0)] = 15.0
    token_file: str = ""
    """Bearer token, read again when the file changes."""
    ca_file: str = ""
    series_per_query: Annotated[int, Field(ge=100)] = 20000
    """Above this many pods a per-pod query is split by namespace."""
    queries: Queries = Queries()


class MetricsApi(_Section):
    enabled: bool = True
    interval: Annotated[Seconds, Field(gt=0)] = 15.0
    timeout: Annotated[Seconds, Field(gt=0)] = 10.0


class Metrics(_Section):
    prometheus: Prometheus = Prometheus()
    metrics_api: MetricsApi = MetricsApi()
    """metrics.k8s.io: the second source, used for what Prometheus did not tell."""
    freshness: Annotated[Seconds, Field(gt=0)] = 120.0
    """A sample older than this is stale: neither zero nor usable."""
    peak_window: Annotated[Seconds, Field(gt=0)] = 900.0
    """Usage history that a peak is estimated from."""


class History(_Section):
    keep: Annotated[Seconds, Field(gt=0)] = 7 * 24 * 3600.0
    """Samples and finished records older than this are removed."""


class Settings(_Section):
    api_version: Literal["rematch/v1alpha1"] = "rematch/v1alpha1"
    kind: Literal["Settings"] = "Settings"
    mode: Mode = Mode.OBSERVE
    scheduler_name: str = "rematch"
    """Pods with this spec.schedulerName are bound by us, and for now only they are moved."""
    managed: Managed = Managed()
    happiness: Happiness = Happiness()
    triggers: Triggers = Triggers()
    decision: Decision = Decision()
    planner: Planner = Planner()
    execution: Execution = Execution()
    metrics: Metrics = Metrics()
    history: History = History()
