"""Slim frozen records of the Kubernetes objects we watch: just the fields a decision can depend on.

Times are seconds since the epoch; quantities are floats in base units (cores, bytes, counts).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from matching.problem import Requirement, Rules, Taint, Term


class Owner(Struct, frozen=True, gc=False):
    """The controlling owner reference."""

    kind: str
    name: str
    uid: str


class Probe(Struct, frozen=True, gc=False):
    period: float = 10.0
    timeout: float = 1.0
    failure_threshold: int = 3
    initial_delay: float = 0.0


class Container(Struct, frozen=True, gc=False):
    """`liveness` is None where the container has no liveness probe."""

    name: str
    liveness: Probe | None = None
    restarts: int = 0
    started: float | None = None


class Pod(Struct, frozen=True, gc=False):
    uid: str
    namespace: str
    name: str
    resource_version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    """Only the ones that can matter to us; a pod's last-applied configuration is not kept."""
    created: float
    scheduler_name: str = "default-scheduler"
    node: str | None = None
    owner: Owner | None = None
    phase: str = "Pending"
    ready: bool = False
    deleting: float | None = None
    priority: int = 0
    priority_class: str = ""
    requests: Mapping[str, float] = {}
    """Effective requests as kube-scheduler counts them: init containers, sidecars and overhead included."""
    rules: Rules = Rules()
    """Shared by the pods of a template; without what its volumes demand, which the spec does not tell."""
    gates: tuple[str, ...] = ()
    """Scheduling gates that are still set."""
    unsupported: tuple[str, ...] = ()
    """Hard constraints that are not supported, by field name; the pod is neither moved nor bound. More can be found
    only with the rest of the cluster at hand: `reactor.cluster.pod_constraints`."""
    pvcs: tuple[str, ...] = ()
    """Names of the PersistentVolumeClaims that it uses."""
    local_data: tuple[str, ...] = ()
    """Volumes whose data would be lost by a move (emptyDir, hostPath, local)."""
    containers: tuple[Container, ...] = ()
    ip: str = ""
    started: float | None = None
    ready_since: float | None = None
    mirror: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def template_hash(self) -> str:
        """What tells the pods of one template apart from those of the next revision of the same owner."""
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
    """Conditions of trouble that are True: MemoryPressure, DiskPressure, PIDPressure."""
    created: float = 0.0
    addresses: tuple[str, ...] = ()
    """Host names and addresses by which a metric may call this node."""


class Event(Struct, frozen=True, gc=False):
    uid: str
    namespace: str
    name: str
    resource_version: str
    reason: str
    type: str
    message: str
    involved_kind: str
    involved_namespace: str
    involved_name: str
    involved_uid: str
    field_path: str = ""
    count: int = 1
    first: float = 0.0
    last: float = 0.0
    component: str = ""


class Workload(Struct, frozen=True, gc=False):
    """A ReplicaSet, Deployment, StatefulSet, DaemonSet or Job."""

    kind: str
    uid: str
    namespace: str
    name: str
    resource_version: str
    owner: Owner | None = None
    replicas: int = 0
    ready_replicas: int = 0


class LabelSelector(Struct, frozen=True, gc=False):
    """matchLabels and matchExpressions in one list of requirements; empty selects everything."""

    requirements: tuple[Requirement, ...] = ()


class PodDisruptionBudget(Struct, frozen=True, gc=False):
    """A PodDisruptionBudget. `selector` None selects nothing."""

    uid: str
    namespace: str
    name: str
    resource_version: str
    selector: LabelSelector | None
    disruptions_allowed: int = 0


class Namespace(Struct, frozen=True, gc=False):
    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class PersistentVolumeClaim(Struct, frozen=True, gc=False):
    """A PersistentVolumeClaim."""

    uid: str
    namespace: str
    name: str
    resource_version: str
    volume: str = ""
    storage_class: str = ""
    exclusive: bool = False
    """ReadWriteOncePod: one pod at a time, wherever it runs."""
    deleting: bool = False


class PersistentVolume(Struct, frozen=True, gc=False):
    """A PersistentVolume."""

    name: str
    uid: str
    resource_version: str
    node_affinity: tuple[Term, ...] | None = None
    local: bool = False
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Zone and region labels with the values that each allows."""


class PriorityClass(Struct, frozen=True, gc=False):
    name: str
    uid: str
    resource_version: str
    value: int = 0


class ConfigMap(Struct, frozen=True, gc=False):
    uid: str
    namespace: str
    name: str
    resource_version: str
    data: Mapping[str, str] = {}


Record = (
    Pod
    | Node
    | Event
    | Workload
    | PodDisruptionBudget
    | Namespace
    | PersistentVolumeClaim
    | PersistentVolume
    | PriorityClass
    | ConfigMap
)
