"""Objects as a real API server prints them, in bulk: templates made once, filled in by number."""

from __future__ import annotations

import json
from collections.abc import Mapping

PODS_PER_WORKLOAD = 10
_TIME = "2026-11-16T00:49:38Z"
_ENV = [
    "LOG_LEVEL",
    "DATABASE_URL",
    "CACHE_URL",
    "QUEUE_URL",
    "FEATURE_FLAGS",
    "TRACE_ENDPOINT",
    "METRICS_PORT",
    "REGION",
    "TIER",
    "SHARD_COUNT",
    "WORKERS",
    "REQUEST_TIMEOUT",
    "SECRETS_PATH",
    "CONFIG_PATH",
    "RETRY_LIMIT",
    "BATCH_SIZE",
    "POOL_SIZE",
    "LOCALE",
]


def uid(kind: int, number: int) -> str:
    return f"{kind:08x}-0000-4000-8000-{number:012x}"


class Template:
    """JSON with %(field)s places; filling one in is a single bytes operation."""

    def __init__(self, example: Mapping[str, object]) -> None:
        self._text = json.dumps(example, separators=(",", ":")).encode()

    def fill(self, **fields: object) -> bytes:
        return self._text % {name.encode(): str(value).encode() for name, value in fields.items()}


def _managed(manager: str, paths: list[str], subresource: str = "") -> dict[str, object]:
    """Field ownership: the largest part of an object that the controller does not read."""
    fields: dict[str, object] = {"f:metadata": {"f:labels": {".": {}, **{f"f:{path}": {} for path in paths}}}}
    fields["f:spec"] = {f"f:{path}": {".": {}, "f:name": {}, "f:value": {}} for path in paths}
    entry: dict[str, object] = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": _TIME,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return entry | ({"subresource": subresource} if subresource else {})


def _container() -> dict[str, object]:
    probe = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    return {
        "name": "web",
        "image": "registry.example.org/team-%(workload)s/web:v1.42.0",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": name, "value": f"value-of-{name.lower()}-for-the-workload"} for name in _ENV],
        "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
        "volumeMounts": [
            {"name": "config", "readOnly": True, "mountPath": "/etc/web"},
            {
                "name": "kube-api-access-%(suffix)s",
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            },
        ],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}} | probe,
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http", "scheme": "HTTP"}} | probe,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def _volumes() -> list[dict[str, object]]:
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    return [
        {"name": "config", "configMap": {"name": "web-config", "defaultMode": 420}},
        {"name": "kube-api-access-%(suffix)s", "projected": {"sources": sources, "defaultMode": 420}},
    ]


def _tolerations() -> list[dict[str, object]]:
    return [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]


_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def pod_template() -> Template:
    """Fields: uid, owner, name, suffix, namespace, workload, node, address, version, due, written."""
    spec = {
        "volumes": _volumes(),
        "containers": [_container()],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "nodeName": "%(node)s",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": _tolerations(),
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    return Template({"metadata": _pod_metadata(), "spec": spec, "status": _pod_status()})


def _pod_metadata() -> dict[str, object]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-%(workload)s-54c76bc4d8", "uid": "%(owner)s"}
    return {
        "name": "%(name)s",
        "generateName": "web-%(workload)s-54c76bc4d8-",
        "namespace": "%(namespace)s",
        "uid": "%(uid)s",
        "resourceVersion": "%(version)s",
        "creationTimestamp": _TIME,
        "labels": {
            "app.kubernetes.io/name": "web-%(workload)s",
            "app.kubernetes.io/part-of": "shop",
            "pod-template-hash": "54c76bc4d8",
            "tier": "frontend",
        },
        "annotations": {"rematch.io/due": "%(due)s", "rematch.io/written": "%(written)s"},
        "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
        "managedFields": [
            _managed("kube-controller-manager", _ENV),
            _managed("kubelet", list(_CONDITIONS), "status"),
        ],
    }


def _pod_status() -> dict[str, object]:
    condition = {"observedGeneration": 1, "status": "True", "lastProbeTime": None, "lastTransitionTime": _TIME}
    container = {
        "name": "web",
        "state": {"running": {"startedAt": _TIME}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": "registry.example.org/team-%(workload)s/web:v1.42.0",
        "imageID": "registry.example.org/web@sha256:" + "0123456789abcdef" * 4,
        "containerID": "containerd://" + "fedcba9876543210" * 4,
        "started": True,
    }
    return {
        "phase": "Running",
        "conditions": [{"type": name} | condition for name in _CONDITIONS],
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": "%(address)s",
        "podIPs": [{"ip": "%(address)s"}],
        "startTime": _TIME,
        "containerStatuses": [container],
        "qosClass": "Burstable",
    }


def node_template() -> Template:
    """Fields: name, uid, version."""
    amounts = {"cpu": "32", "ephemeral-storage": "203056560Ki", "memory": "131617520Ki", "pods": "110"}
    checks = ("MemoryPressure", "DiskPressure", "PIDPressure")
    conditions = [
        {
            "type": name,
            "status": "False",
            "lastHeartbeatTime": _TIME,
            "lastTransitionTime": _TIME,
            "reason": f"No{name}",
        }
        for name in checks
    ]
    conditions.append({"type": "Ready", "status": "True", "lastHeartbeatTime": _TIME, "lastTransitionTime": _TIME})
    images = [{"names": [f"registry.example.org/image-{n}:v1"], "sizeBytes": 10_000_000 + n} for n in range(50)]
    return Template(
        {
            "metadata": {
                "name": "%(name)s",
                "uid": "%(uid)s",
                "resourceVersion": "%(version)s",
                "creationTimestamp": _TIME,
                "labels": {"kubernetes.io/hostname": "%(name)s", "topology.kubernetes.io/zone": "zone-a"},
                "managedFields": [_managed("kubelet", list(checks), "status")],
            },
            "spec": {"podCIDR": "10.1.0.0/24"},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": conditions, "images": images},
        }
    )


def workload_template(owned: bool) -> Template:
    """A ReplicaSet (owned) or a Deployment. Fields: name, uid, owner, namespace, workload, version."""
    owners = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-%(workload)s", "uid": "%(owner)s"}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [_container()], "volumes": _volumes()}}
    return Template(
        {
            "metadata": {
                "name": "%(name)s",
                "namespace": "%(namespace)s",
                "uid": "%(uid)s",
                "resourceVersion": "%(version)s",
                "creationTimestamp": _TIME,
                "ownerReferences": [each | {"controller": True} for each in owners] if owned else None,
                "managedFields": [_managed("kube-controller-manager", _ENV)],
            },
            "spec": {"replicas": PODS_PER_WORKLOAD, "template": template},
            "status": {"replicas": PODS_PER_WORKLOAD, "readyReplicas": PODS_PER_WORKLOAD},
        }
    )


def event_template(padding: int) -> Template:
    """An Unhealthy event; `padding` bytes of field ownership. Fields: name, uid, version, namespace, pod, pod_uid,
    due, written."""
    return Template(
        {
            "metadata": {
                "name": "%(name)s",
                "namespace": "%(namespace)s",
                "uid": "%(uid)s",
                "resourceVersion": "%(version)s",
                "creationTimestamp": _TIME,
                "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:" + "x" * padding: {}}}],
            },
            "involvedObject": {
                "kind": "Pod",
                "namespace": "%(namespace)s",
                "name": "%(pod)s",
                "uid": "%(pod_uid)s",
                "fieldPath": "spec.containers{web}",
            },
            "reason": "Unhealthy",
            "message": "Liveness probe failed: HTTP probe failed with statuscode: 500",
            "source": {"component": "kubelet"},
            "firstTimestamp": "%(due)s",
            "lastTimestamp": "%(written)s",
            "count": 3,
            "type": "Warning",
            "eventTime": None,
        }
    )
