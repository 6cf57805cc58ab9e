"""The JSON of a pod, as far as it is read. Parts that pods of one template share stay raw and are decoded once."""

from __future__ import annotations

from msgspec import Raw, Struct

from reactor.cluster.decoding.common import Time, WireMeta


class WireResources(Struct, gc=False):
    requests: Raw = Raw(b"")
    limits: Raw = Raw(b"")


class WirePort(
    Struct, rename={"host_port": "hostPort", "container_port": "containerPort", "host_ip": "hostIP"}, gc=False
):
    container_port: int | None = None
    host_port: int | None = None
    host_ip: str | None = None
    protocol: str | None = None


class WireRestartRule(Struct, gc=False):
    action: str | None = None


class WireLifecycle(Struct, rename="camel", gc=False):
    pre_stop: Raw = Raw(b"")


class WireContainer(Struct, rename="camel", gc=False):
    name: str
    resources: Raw = Raw(b"")
    liveness_probe: Raw = Raw(b"")
    readiness_probe: Raw = Raw(b"")
    ports: list[WirePort] | None = None
    lifecycle: WireLifecycle | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[WireRestartRule] | None = None

    @property
    def sidecar(self) -> bool:
        """For init containers: it runs as long as the other containers."""
        return self.restart_policy == "Always"


class WireClaimSource(Struct, rename="camel", gc=False):
    claim_name: str


class WireVolume(
    Struct,
    rename={
        "empty_dir": "emptyDir",
        "host_path": "hostPath",
        "config_map": "configMap",
        "downward_api": "downwardAPI",
        "persistent_volume_claim": "persistentVolumeClaim",
    },
    gc=False,
):
    """Every volume has one source; one without any of these has a source that is not supported."""

    name: str
    empty_dir: Raw = Raw(b"")
    host_path: Raw = Raw(b"")
    config_map: Raw = Raw(b"")
    secret: Raw = Raw(b"")
    projected: Raw = Raw(b"")
    downward_api: Raw = Raw(b"")
    image: Raw = Raw(b"")
    nfs: Raw = Raw(b"")
    csi: Raw = Raw(b"")
    ephemeral: Raw = Raw(b"")
    persistent_volume_claim: WireClaimSource | None = None


class WireGate(Struct, gc=False):
    name: str


class WireGroup(Struct, rename="camel", gc=False):
    """`schedulingGroup` since Kubernetes 1.36, `workloadRef` in 1.35."""

    pod_group_name: str = ""
    name: str = ""
    pod_group: str = ""


class WirePodSpec(Struct, rename="camel", gc=False):
    containers: list[WireContainer] = []
    init_containers: list[WireContainer] | None = None
    volumes: list[WireVolume] | None = None
    node_name: str | None = None
    scheduler_name: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    tolerations: Raw = Raw(b"")
    node_selector: Raw = Raw(b"")
    affinity: Raw = Raw(b"")
    overhead: Raw = Raw(b"")
    resources: Raw = Raw(b"")
    scheduling_gates: list[WireGate] | None = None
    topology_spread_constraints: Raw = Raw(b"")
    resource_claims: list[Raw] | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    scheduling_group: WireGroup | None = None
    workload_ref: WireGroup | None = None


class WireRunning(Struct, rename="camel", gc=False):
    started_at: Time | None = None


class WireTerminated(Struct, rename="camel", gc=False):
    reason: str | None = None
    finished_at: Time | None = None


class WireState(Struct, gc=False):
    running: WireRunning | None = None
    terminated: WireTerminated | None = None


class WireContainerStatus(Struct, rename="camel", gc=False):
    name: str
    resources: Raw = Raw(b"")
    """What the container runs with: differs from the spec while it is resized in place."""
    allocated_resources: Raw = Raw(b"")
    restart_count: int = 0
    state: WireState | None = None
    last_state: WireState | None = None
    ready: bool = False
    started: bool | None = None
    """False until the startup probe succeeded; liveness probes do not run before."""


class WireCondition(Struct, rename="camel", gc=False):
    type: str
    status: str
    reason: str | None = None
    last_transition_time: Time | None = None


class WirePodStatus(Struct, rename="camel", gc=False):
    phase: str | None = None
    conditions: list[WireCondition] | None = None
    container_statuses: list[WireContainerStatus] | None = None
    init_container_statuses: list[WireContainerStatus] | None = None
    start_time: Time | None = None
    nominated_node_name: str | None = None
    resources: Raw = Raw(b"")
    """As for a container, of the pod as a whole."""
    allocated_resources: Raw = Raw(b"")


class WirePod(Struct, gc=False):
    metadata: WireMeta
    spec: WirePodSpec
    status: WirePodStatus | None = None
