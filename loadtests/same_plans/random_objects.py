"""Random Kubernetes objects of a cluster: namespaces, nodes, pods and their owners, volumes, Events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from loadtests.same_plans.draw import (
    HOSTNAME,
    ZONE,
    Draw,
    Json,
    node_labels,
    random_taints,
    random_terms,
    random_tolerations,
)

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
NAMESPACES = ("shop", "store", "tools")
CPU_REQUESTS = ("100m", "250m", "0.5", "500m", "1", "1500m")
MEMORY_REQUESTS = ("128Mi", "256Mi", "0.5Gi", "1Gi", "1G", "2Gi")
PROTECTING_ANNOTATIONS: tuple[dict[str, str], ...] = (
    {"rematch.io/do-not-move": "true"},
    {"rematch.io/do-not-move": "false"},
    {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    {"karpenter.sh/do-not-disrupt": "true"},
    {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""},
)


def timestamp(ago: float) -> str:
    return (NOW - timedelta(seconds=ago)).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True)
class RandomWorkload:
    """`kind` is the kind of the pods' controller, empty without one. `gone`: the controller does not exist any more."""

    name: str
    namespace: str
    kind: str
    scheduler: str
    tier: str
    gone: bool

    @classmethod
    def random(cls, draw: Draw, at: int) -> RandomWorkload:
        kinds = {"ReplicaSet": 12, "StatefulSet": 3, "DaemonSet": 0.5, "Job": 0.4, "": 0.4, "Node": 0.2}
        return cls(
            name=f"app-{at}",
            namespace=draw.one_of({"shop": 3, "store": 3, "tools": 2, "kube-system": 0.5}),
            kind=draw.one_of(kinds),
            scheduler=draw.one_of({"rematch": 15, "default-scheduler": 1}),
            tier=draw.choice(["web", "work", "data"]),
            gone=draw.chance(0.04),
        )

    @property
    def owner(self) -> str:
        return f"{self.name}-6f5b" if self.kind == "ReplicaSet" else self.name

    @property
    def labels(self) -> dict[str, str]:
        version = {"ReplicaSet": {"pod-template-hash": "6f5b"}, "StatefulSet": {"controller-revision-hash": "r1"}}
        return {"app": self.name, "tier": self.tier, **version.get(self.kind, {})}

    def objects(self, draw: Draw) -> Iterator[tuple[str, Json]]:
        if self.gone or self.kind in ("", "Node"):
            return
        spec: Json = {"parallelism": 1} if self.kind == "Job" else {"replicas": draw.randint(1, 4)}
        status = {"readyReplicas": 1, "numberReady": 1, "desiredNumberScheduled": 3}
        meta = metadata(self.owner, self.namespace)
        if self.kind == "ReplicaSet":
            meta["ownerReferences"] = [_owner_reference("Deployment", self.name)]
            yield "Deployment", {"metadata": metadata(self.name, self.namespace), "spec": spec, "status": status}
        yield self.kind, {"metadata": meta, "spec": spec, "status": status}


def metadata(name: str, namespace: str = "") -> Json:
    where = {"namespace": namespace} if namespace else {}
    return {"name": name, "uid": f"uid-{name}", "creationTimestamp": timestamp(9000), **where}


def _owner_reference(kind: str, name: str) -> Json:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}


def namespace_object(draw: Draw, name: str) -> Json:
    meta = metadata(name) | {"labels": {"kubernetes.io/metadata.name": name, "team": draw.choice(["one", "two"])}}
    if draw.chance(0.1):
        meta["annotations"] = {"rematch.io/threshold": draw.choice(["0.98", "0.5", "none"])}
    return {"metadata": meta}


def node_object(draw: Draw, name: str, at: int, *, cores: int) -> Json:
    memory = cores * 3
    allocatable = {"cpu": f"{cores * 1000 - 100}m", "memory": f"{memory * 1024 - 256}Mi"}
    allocatable["pods"] = str(draw.choice([110, 110, 12, 6]))
    capacity = {**allocatable, "cpu": str(cores), "memory": f"{memory}Gi"}
    for resources in (allocatable, capacity):
        resources.update({"ephemeral-storage": "20Gi", "nvidia.com/gpu": str(at % 2)})
    meta = metadata(name) | {"labels": node_labels(draw, name, at)}
    if draw.chance(0.6):
        meta["annotations"] = {"rematch.io/bandwidth-bps": draw.choice(["1G", "100M"])}
    return {
        "metadata": meta,
        "spec": {"unschedulable": draw.chance(0.06), "taints": random_taints(draw) if draw.chance(0.12) else []},
        "status": {
            "allocatable": allocatable,
            "capacity": capacity,
            "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": f"10.1.0.{at}"}],
            "conditions": _node_conditions(draw),
        },
    }


def _node_conditions(draw: Draw) -> list[Json]:
    trouble = {"MemoryPressure": draw.chance(0.05), "DiskPressure": draw.chance(0.03), "Ready": not draw.chance(0.06)}
    beat = timestamp(draw.randint(0, 20))
    return [{"type": kind, "status": str(true), "lastHeartbeatTime": beat} for kind, true in trouble.items()]


def pod_metadata(draw: Draw, workload: RandomWorkload, number: int, uid: str) -> Json:
    name = f"{workload.owner}-{number}"
    meta: Json = metadata(name, workload.namespace) | {"uid": uid, "labels": workload.labels, "annotations": {}}
    meta["creationTimestamp"] = timestamp(draw.randint(40, 7200))
    if workload.kind:
        meta["ownerReferences"] = [_owner_reference(workload.kind, workload.owner)]
    if draw.chance(0.05):
        meta["annotations"] |= draw.choice(PROTECTING_ANNOTATIONS)
    if draw.chance(0.1):
        meta["annotations"]["rematch.io/threshold"] = draw.choice(["0.99", "0.5", "2"])
    if draw.chance(0.5):
        meta["annotations"]["rematch.io/network-bps"] = draw.choice(["1M", "20M", "100M"])
    if workload.kind == "Node":
        meta["annotations"]["kubernetes.io/config.mirror"] = "x"
    if draw.chance(0.03):
        meta["deletionTimestamp"] = timestamp(3)
    return meta


def pod_spec(draw: Draw, workload: RandomWorkload, nodes: Sequence[str]) -> Json:
    spec: Json = {"schedulerName": workload.scheduler, "containers": [_main_container(draw)]}
    if draw.chance(0.15):
        spec["initContainers"] = [_helper(draw, draw.chance(0.5))]
    if draw.chance(0.1):
        spec["overhead"] = {"cpu": "50m", "memory": "32Mi"}
    if draw.chance(0.2):
        spec["priority"] = int(draw.one_of({"10": 10, "1000": 10, "2000000000": 1}))
    if draw.chance(0.015):
        spec["priorityClassName"] = "system-cluster-critical"
    if draw.chance(0.2):
        spec["tolerations"] = [{key: value for key, value in random_tolerations(draw)[0].items() if value}]
    if draw.chance(0.1):
        spec["nodeSelector"] = {"disk": draw.choice(["ssd", "hdd"])}
    if draw.chance(0.35):
        spec["affinity"] = _affinity(draw, workload, nodes)
    if draw.chance(0.2):
        spec["topologySpreadConstraints"] = [_spread_constraint(draw, workload)]
    if draw.chance(0.2):
        spec["volumes"] = [_volume_source(draw, workload)]
    if draw.chance(0.02):
        spec["resourceClaims"] = [{"name": "device"}]
    if draw.chance(0.05):
        spec["hostNetwork"] = True
    return spec


def _main_container(draw: Draw) -> Json:
    requests = {"cpu": draw.choice(CPU_REQUESTS), "memory": draw.choice(MEMORY_REQUESTS)}
    if draw.chance(0.1):
        requests["ephemeral-storage"] = "4Gi"
    if draw.chance(0.04):
        requests["nvidia.com/gpu"] = "1"
    container: Json = {"name": "main", "resources": {draw.choice(["requests", "requests", "limits"]): requests}}
    if draw.chance(0.93):
        period, delay = draw.choice([2, 5, 10, 10, 10]), draw.choice([0, 0, 15])
        container["livenessProbe"] = {"periodSeconds": period, "failureThreshold": 3, "initialDelaySeconds": delay}
    if draw.chance(0.1):
        container["ports"] = [{"containerPort": 8080, "hostPort": draw.choice([80, 443]), "protocol": "TCP"}]
    return container


def _helper(draw: Draw, sidecar: bool) -> Json:
    requests = {"cpu": draw.choice(CPU_REQUESTS), "memory": draw.choice(MEMORY_REQUESTS)}
    return {"name": "helper", "resources": {"requests": requests}, **({"restartPolicy": "Always"} if sidecar else {})}


def _affinity(draw: Draw, workload: RandomWorkload, nodes: Sequence[str]) -> Json:
    """Node affinity, pod affinity or pod anti-affinity, required or preferred."""
    kind = draw.choice(["nodeAffinity", "podAffinity", "podAntiAffinity", "podAntiAffinity"])
    weight, required = draw.randint(1, 100), draw.chance(0.5)
    rule = "requiredDuringSchedulingIgnoredDuringExecution" if required else _PREFERRED
    if kind == "nodeAffinity":
        terms = [_node_term(term) for term in random_terms(draw, {"name": draw.choice(nodes)})]
        preferred = [{"weight": weight, "preference": term} for term in terms]
        return {kind: {rule: {"nodeSelectorTerms": terms} if required else preferred}}
    term = _affinity_term(draw, workload, near=kind == "podAffinity")
    return {kind: {rule: [term] if required else [{"weight": weight, "podAffinityTerm": term}]}}


_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _node_term(term: Json) -> Json:
    return {"matchExpressions": term["expressions"], "matchFields": term["fields"]}


def _affinity_term(draw: Draw, workload: RandomWorkload, *, near: bool) -> Json:
    labels = {"tier": draw.choice(["web", "work", "data"])} if near else {"app": workload.name}
    term: Json = {"topologyKey": draw.choice([HOSTNAME, HOSTNAME, ZONE]), "labelSelector": {"matchLabels": labels}}
    if draw.chance(0.2):
        term["namespaces"] = draw.some(NAMESPACES, 3)
    if draw.chance(0.2):
        term["namespaceSelector"] = {"matchLabels": {"team": "one"}} if draw.chance(0.5) else {}
    if draw.chance(0.2):
        term["matchLabelKeys"] = ["pod-template-hash"]
    return term


def _spread_constraint(draw: Draw, workload: RandomWorkload) -> Json:
    return {
        "topologyKey": draw.choice([HOSTNAME, ZONE]),
        "maxSkew": draw.randint(1, 2),
        "whenUnsatisfiable": draw.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": workload.name}},
        "nodeTaintsPolicy": draw.choice(["Honor", "Ignore"]),
        "nodeAffinityPolicy": draw.choice(["Honor", "Ignore"]),
        **({"minDomains": 2} if draw.chance(0.2) else {}),
    }


def _volume_source(draw: Draw, workload: RandomWorkload) -> Json:
    claim = {"claimName": f"{workload.name}-claim"}
    sources: dict[str, Json] = {
        "emptyDir": {},
        "hostPath": {"path": "/data"},
        "configMap": {"name": "settings"},
        "iscsi": {"iqn": "x"},
        "persistentVolumeClaim": claim,
    }
    kinds = {"emptyDir": 1, "hostPath": 0.5, "configMap": 2, "iscsi": 1, "persistentVolumeClaim": 4}
    kind = draw.one_of(kinds)
    return {"name": "data", kind: sources[kind]}


def volume_object(draw: Draw, name: str, nodes: Sequence[str]) -> Json:
    labels = {ZONE: draw.choice(["zone-0", "zone-1", "zone-0__zone-2"])} if draw.chance(0.4) else {}
    spec: Json = {"local": {"path": "/disk"}} if draw.chance(0.15) else {"csi": {"driver": "disk"}}
    if draw.chance(0.4):
        expression = {"key": HOSTNAME, "operator": "In", "values": draw.sample(list(nodes), 2)}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return {"metadata": {**metadata(name), "labels": labels}, "spec": spec}


def pod_status(draw: Draw, node: str | None) -> Json:
    if node is None:
        return {"phase": "Pending"}
    phase = draw.one_of({"Running": 40, "Pending": 1, "Succeeded": 0.6, "Failed": 0.6})
    started = timestamp(draw.randint(30, 4000))
    running = {"state": {"running": {"startedAt": started}}, "started": not draw.chance(0.05)}
    ready = {"type": "Ready", "status": str(draw.chance(0.8)), "lastTransitionTime": started}
    return {
        "phase": phase,
        "startTime": started,
        "conditions": [ready],
        "containerStatuses": [{"name": "main", "restartCount": draw.randint(0, 3), **running}],
    }


def pod_events(draw: Draw, pod: Json) -> Iterator[Json]:
    """Mostly failed liveness probes, sometimes a kill, rarely other Events."""
    kinds = {
        "Liveness probe failed: HTTP probe failed with statuscode: 503": 10.0,
        "(combined from similar events): Liveness probe failed: timeout": 1.0,
        "Liveness probe errored: rpc error": 1.0,
        "Readiness probe failed: refused": 1.0,
    }
    yield _event(draw, pod, "Unhealthy", draw.one_of(kinds), draw.choice([1, 3, 9, 14, 20, 25, 40]))
    if draw.chance(0.25):
        yield _event(draw, pod, "Killing", "Container main failed liveness probe, will be restarted", 1)
    if draw.chance(0.05):
        yield _event(draw, pod, "Killing", "Stopping container main", 1)


def _event(draw: Draw, pod: Json, reason: str, message: str, count: int) -> Json:
    """In core/v1 or in events.k8s.io/v1."""
    meta = pod["metadata"]
    last = draw.choice([1, 5, 20, 60, 100, 600])
    first = last + (count - 1) * 10
    warning = "Warning" if reason == "Unhealthy" else "Normal"
    involved = {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
    involved["fieldPath"] = draw.choice(["spec.containers{main}", "spec.containers{main}", ""])
    name = f"{meta['name']}.{reason.lower()}.{draw.randint(0, 10**9):x}"
    event: Json = {"metadata": metadata(name, meta["namespace"]), "reason": reason, "type": warning}
    if draw.chance(0.8):
        times = {"count": count, "firstTimestamp": timestamp(first), "lastTimestamp": timestamp(last)}
        source = {"component": draw.one_of({"kubelet": 20, "somebody-else": 1})}
        return event | {"involvedObject": involved, "message": message, "source": source, **times}
    series = {"count": count, "lastObservedTime": timestamp(last)}
    news = {"eventTime": timestamp(first), "series": series, "reportingController": "kubelet"}
    return event | {"apiVersion": "events.k8s.io/v1", "regarding": involved, "note": message, **news}
