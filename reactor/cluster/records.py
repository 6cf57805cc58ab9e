"""Frozen records of Kubernetes objects, with only the fields that a decision can depend on.

Times are seconds since the epoch; quantities are floats in base units (cores, bytes, counts). Requests and allocatable
are rounded up to whole milli-cores, bytes and counts, as by kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from matching.problem import Requirement, Rules, Taint, Term, Volume


class Owner(Struct, frozen=True, gc=False):
    """The controlling owner reference."""

    kind: str
    name: str
    uid: str


class Probe(Struct, frozen=True, gc=False):
    period: float = 10.0
    failure_threshold: int = 3
    initial_delay: float = 0.0


class Container(Struct, frozen=True, gc=False):
    """`liveness` is None where the container has no liveness probe."""

    name: str
    liveness: Probe | None = None
    restarts: int = 0
    started: float | None = None
    terminated: float | None = None
    """When it last ended in a way that a failed liveness probe can have caused: not by OOM, not before it ran."""
    fails_readiness: bool = False
    """It runs and is not ready, and its readiness probe checks the same as its liveness probe."""
    cpu_limit: float | None = None
    """Cores; None without a limit."""
    memory_limit: float | None = None
    """Bytes; None without a limit."""


class Pod(Struct, frozen=True, gc=False):
    uid: str
    namespace: str
    name: str
    resource_version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    """Only those that Rematch reads (`decoding.common.KEPT_PREFIXES`)."""
    created: float
    scheduler_name: str = "default-scheduler"
    node: str | None = None
    nominated_node: str | None = None
    """Of a pending pod: the node on which kube-scheduler holds room for it."""
    owner: Owner | None = None
    phase: str = "Pending"
    ready: bool = False
    deleting: float | None = None
    priority: int = 0
    priority_class: str = ""
    requests: Mapping[str, float] = {}
    """Effective requests as in kube-scheduler, including init containers, sidecars and overhead. While the pod is
    resized in place: the largest of what it asks for, has, and was promised."""
    infeasible_resize: Mapping[str, float] | None = None
    """The same with a resize that the node can never make. kube-scheduler does not count it there. None without one."""
    rules: Rules = Rules()
    """Shared by the pods of a template. Rules of its volumes are added by `pod_constraints.rules_of`."""
    gates: tuple[str, ...] = ()
    """Scheduling gates that are still set."""
    unsupported: tuple[str, ...] = ()
    """Hard constraints that are not supported, by field name. `pod_constraints.unsupported_constraints` adds those that
    depend on other objects."""
    pvcs: tuple[str, ...] = ()
    """Names of the PersistentVolumeClaims that the pod uses, those of ephemeral volumes included."""
    ephemeral_pvcs: tuple[str, ...] = ()
    """Those of generic ephemeral volumes: they are made for this pod and go with it."""
    local_data: tuple[str, ...] = ()
    """Volumes whose data a move would lose (emptyDir, hostPath)."""
    containers: tuple[Container, ...] = ()
    scheduled: float | None = None
    """When it got its node."""
    started: float | None = None
    ready_since: float | None = None
    mirror: bool = False
    group: str = ""
    """The PodGroup it belongs to: its members are scheduled, and make progress, only together."""
    host_network: bool = False
    """It has no network of its own: what is measured as its traffic is that of the node."""
    readiness_probe: bool = False
    """Some container has one, so that a Service does not send requests before the pod can answer them."""
    pre_stop: bool = False
    """Every container has a preStop hook, so routes have time to leave the pod out before it is asked to end."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def replacement_requests(self) -> Mapping[str, float]:
        """What room a replacement needs. While a resize is in flight it may ask for the old or for the new amount, so
        both count. The owner's template does not: where a VPA sets the requests of new pods, it says nothing."""
        return self.requests if self.infeasible_resize is None else self.infeasible_resize

    @property
    def status(self) -> str:
        """As kubectl shows it: Terminating, else the phase."""
        return self.phase if self.deleting is None else "Terminating"

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def of_node(self) -> bool:
        """Of a DaemonSet or a static pod: it could not run elsewhere."""
        return self.mirror or (self.owner is not None and self.owner.kind in ("DaemonSet", "Node"))

    @property
    def active(self) -> bool:
        """Counted by its ReplicaSet: neither finished nor being deleted."""
        return self.deleting is None and not self.finished

    @property
    def template_hash(self) -> str:
        """Differs between the revisions of an owner's template."""
        return self.labels.get("pod-template-hash") or self.labels.get("controller-revision-hash", "")


class Node(Struct, frozen=True, gc=False):
    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = {}
    allocatable: Mapping[str, float] = {}
    capacity: Mapping[str, float] = {}
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = False
    pressure: tuple[str, ...] = ()
    """Pressure conditions that are True: MemoryPressure, DiskPressure, PIDPressure."""
    created: float = 0.0
    addresses: tuple[str, ...] = ()
    """Host names and addresses that a metric may use for this node."""
    features: tuple[str, ...] = ()
    """`status.declaredFeatures`."""

    def kept_back(self, axis: str) -> float:
        """Capacity that pods cannot have: what kubelet and system daemons use of it takes nothing from pods."""
        return max(0.0, self.capacity.get(axis, 0.0) - self.allocatable.get(axis, 0.0))


class Event(Struct, frozen=True, gc=False):
    uid: str
    namespace: str
    name: str
    resource_version: str
    reason: str
    type: str
    message: str
    """Only of Events about probes (`decoding.events.PROBE_REASONS`), and only its beginning."""
    involved_name: str
    """In the namespace of the Event: the API server refuses any other."""
    involved_uid: str
    field_path: str = ""
    count: int = 1
    first: float = 0.0
    last: float = 0.0
    component: str = ""
    involved_kind: str = "Pod"
    host: str = ""
    """The node of the kubelet that reports it."""


class LabelSelector(Struct, frozen=True, gc=False):
    """matchLabels and matchExpressions as requirements; without any it selects everything."""

    requirements: tuple[Requirement, ...] = ()


class Workload(Struct, frozen=True, gc=False):
    """A ReplicaSet, Deployment, StatefulSet, DaemonSet or Job."""

    kind: str
    uid: str
    namespace: str
    name: str
    resource_version: str
    owner: Owner | None = None
    replicas: int = 0
    generation: int = 0
    observed_generation: int = 0
    """Of the status. Below `generation` the controller has not seen the newest spec."""
    existing: int = 0
    """`status.replicas`, `readyReplicas`, `availableReplicas` and `updatedReplicas`."""
    ready: int = 0
    available: int = 0
    updated: int = 0
    terminating: int | None = None
    """`status.terminatingReplicas`; None where the API server does not say."""
    paused: bool = False
    update_strategy: str = ""
    """RollingUpdate, Recreate or OnDelete."""
    max_surge: int = 0
    """As a number of pods: a percentage is rounded up, that of `max_unavailable` down."""
    max_unavailable: int = 0
    min_ready_seconds: int = 0
    current_revision: str = ""
    """Of a StatefulSet, as is `update_revision`."""
    update_revision: str = ""
    replicas_managers: tuple[str, ...] = ()
    """Who last wrote `spec.replicas`, by field manager, Rematch's own excluded."""
    surge: str = ""
    """The mark of a scale-up of ours, while nobody has changed `spec.replicas` since (`execution.surge_marks`)."""
    gitops: str = ""
    """The label or annotation by which a GitOps tool tracks the object; empty without one."""
    rules: Rules | None = None
    """The template's, of a ReplicaSet or StatefulSet with replicas, without host ports and features. A moved pod may
    carry a hint of ours in its own."""
    selector: LabelSelector | None = None

    @property
    def rolling_out(self) -> bool:
        """Its controller has not seen the newest template yet, or has pods of an older one."""
        return self.observed_generation < self.generation or self.updated < self.existing


class PodDisruptionBudget(Struct, frozen=True, gc=False):
    """`selector` None selects nothing."""

    uid: str
    namespace: str
    name: str
    resource_version: str
    selector: LabelSelector | None
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    never: bool = False
    """`maxUnavailable: 0` or `minAvailable: 100%`: it allows no disruption in principle, not only now."""
    always_allows_unhealthy: bool = False
    """`unhealthyPodEvictionPolicy: AlwaysAllow`."""


class HorizontalPodAutoscaler(Struct, frozen=True, gc=False):
    uid: str
    namespace: str
    name: str
    resource_version: str
    target_kind: str
    target_name: str


class Service(Struct, frozen=True, gc=False):
    uid: str
    namespace: str
    name: str
    resource_version: str
    selector: Mapping[str, str] = {}
    """Labels of the pods behind it. Empty: somebody else keeps its endpoints."""


class ResourceQuota(Struct, frozen=True, gc=False):
    """`left` is hard less used, by the names of the quota (`pods`, `requests.cpu`); a quota with scopes is left out."""

    uid: str
    namespace: str
    name: str
    resource_version: str
    left: Mapping[str, float] = {}


class Namespace(Struct, frozen=True, gc=False):
    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class PersistentVolumeClaim(Struct, frozen=True, gc=False):
    uid: str
    namespace: str
    name: str
    resource_version: str
    volume: str = ""
    bind_completed: bool = False
    """Without it a claim that names its volume is only about to be bound."""
    lost: bool = False
    """Its volume is gone."""
    controller: str = ""
    """UID of the controlling owner: the pod of an ephemeral volume."""
    exclusive: bool = False
    """ReadWriteOncePod: only one pod at a time may use it."""
    many_nodes: bool = False
    """ReadWriteMany or ReadOnlyMany: pods on several nodes may use it at the same time."""
    deleting: bool = False


class PersistentVolume(Struct, frozen=True, gc=False):
    name: str
    uid: str
    resource_version: str
    node_affinity: tuple[Term, ...] | None = None
    driver_affinity: tuple[Term, ...] | None = None
    """Of an in-tree volume: the same with the zone label of the CSI driver that has taken it over."""
    local: bool = False
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Zone and region labels with the values that each allows."""
    attachable: Volume | None = None
    """What its CSI driver attaches; also for the in-tree volumes that a CSI driver has taken over."""


class CsiNode(Struct, frozen=True, gc=False):
    """What the CSI drivers of a node say; it has the node's name."""

    name: str
    uid: str
    resource_version: str
    volume_limits: Mapping[str, int] = {}
    """How many volumes can be attached, by driver; a driver without a number has no limit."""


class VolumeAttachment(Struct, frozen=True, gc=False):
    name: str
    uid: str
    resource_version: str
    node: str
    driver: str
    pv: str = ""
    """Empty for a volume without PV, which does not count."""


class ConfigMap(Struct, frozen=True, gc=False):
    uid: str
    namespace: str
    name: str
    resource_version: str
    data: Mapping[str, str] = {}


class PodUsageSample(Struct, frozen=True, gc=False):
    """Usage of a pod: PodMetrics of metrics.k8s.io, or the same from Prometheus. None is missing, NaN is invalid."""

    namespace: str
    pod: str
    cpu: float | None
    memory: float | None
    at: float


class NodeUsageSample(Struct, frozen=True, gc=False):
    """As PodUsageSample; `node` is a node's name, or a host name or address where the source has no other."""

    node: str
    cpu: float | None
    memory: float | None
    at: float


Record = (
    Pod
    | Node
    | Event
    | Workload
    | PodDisruptionBudget
    | Namespace
    | PersistentVolumeClaim
    | PersistentVolume
    | CsiNode
    | VolumeAttachment
    | ConfigMap
    | HorizontalPodAutoscaler
    | Service
    | ResourceQuota
)
