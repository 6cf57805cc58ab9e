"""Random pods that a real API server accepts: templates of workloads, and the status of each pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadtests.oracle.random_features import Feature, Features
from loadtests.oracle.random_nodes import ODD_LABELS
from loadtests.oracle.random_storage import DELAYED, IMMEDIATE, LOCAL, ZONAL
from loadtests.same_plans.draw import EFFECTS, HOSTNAME, ZONE, Draw, Json
from loadtests.same_plans.random_objects import NAMESPACES, RandomWorkload, timestamp

CPU = ("100m", "250m", "0.5", "500m", "1", "1500m", "100500u", "0", "1m")
MEMORY = ("128Mi", "256Mi", "0.5Gi", "1Gi", "1G", "2Gi", "134217729", "128974848500m", "0", "1")
_FULL_CPU = ("250m", "500m", "1", "900m")
_FULL_MEMORY = ("512Mi", "1Gi", "1073741825", "2Gi", "1073741823")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_RESTART_ALL = {
    "restartPolicy": "Never",
    "restartPolicyRules": [
        {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}},
    ],
}
_ODD_VALUES = (*ODD_LABELS, "0", "")
"""What the API server takes as a value of Gt or Lt; int() of Python and ParseInt of Go disagree about some."""


def random_pod_spec(features: Features, workload: RandomWorkload, nodes: Sequence[str]) -> Json:
    draw = features.draw
    spec: Json = {"schedulerName": workload.scheduler, "containers": [_main_container(features)]}
    _add_resources(features, spec)
    if draw.chance(0.2):
        spec["priority"] = draw.choice([10, 1000, -5])
    if features.chance(Feature.TAINTS, 0.6) or features.chance(Feature.CORDONED, 0.3):
        spec["tolerations"] = [_toleration(draw) for _ in range(draw.choice([1, 1, 2]))]
    if features.chance(Feature.NODE_AFFINITY, 0.2):
        spec["nodeSelector"] = {"disk": draw.choice(["ssd", "hdd"])}
    if affinity := _affinity(features, workload, nodes):
        spec["affinity"] = affinity
    if features.chance(Feature.SPREAD, 0.7):
        spec["topologySpreadConstraints"] = _spread_constraints(draw, workload)
    if volumes := _volumes(features, workload):
        spec["volumes"] = volumes
    if features.chance(Feature.HOST_PORTS, 0.2):
        spec["hostNetwork"] = True
        for container in spec["containers"]:
            for port in container.get("ports", ()):
                port.pop("hostPort", None)
    return spec


def _main_container(features: Features) -> Json:
    draw = features.draw
    container: Json = {
        "name": "main",
        "image": "app",
        "livenessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 10, "failureThreshold": 3},
        "resources": {draw.choice(["requests", "requests", "limits"]): _amounts(features)},
    }
    if draw.chance(0.05):
        container["resources"] = {}
    if features.chance(Feature.HOST_PORTS, 0.7):
        port = {"containerPort": 8080, "hostPort": draw.choice([80, 443]), "protocol": draw.choice(["TCP", "UDP"])}
        container["ports"] = [port | ({"hostIP": draw.choice(["10.1.0.1", "0.0.0.0"])} if draw.chance(0.4) else {})]
    if features.chance(Feature.DECLARED_FEATURES, 0.4):
        container |= _RESTART_ALL
    return container


def _amounts(features: Features) -> Json:
    draw = features.draw
    full = Feature.FULL_NODES in features.used
    amounts: Json = {
        "cpu": draw.choice(_FULL_CPU if full else CPU),
        "memory": draw.choice(_FULL_MEMORY if full else MEMORY),
    }
    if draw.chance(0.1):
        amounts["ephemeral-storage"] = draw.choice(["4Gi", "5G", "1"])
    if draw.chance(0.05):
        del amounts[draw.choice(["cpu", "memory"])]
    return amounts


def _add_resources(features: Features, spec: Json) -> None:
    draw, main = features.draw, spec["containers"][0]
    if features.chance(Feature.EXTENDED_RESOURCES, 0.4):
        kind, amount = draw.choice([("nvidia.com/gpu", "1"), ("nvidia.com/gpu", "2"), ("hugepages-2Mi", "64Mi")])
        main["resources"] = {"limits": {"cpu": "100m", "memory": "64Mi", kind: amount}}
    if features.chance(Feature.INIT_CONTAINERS, 0.5):
        number = draw.choice([1, 1, 2, 3])
        spec["initContainers"] = [_init_container(features, at, sidecar=draw.chance(0.5)) for at in range(number)]
    if features.chance(Feature.INIT_CONTAINERS, 0.2):
        spec["containers"].append({"name": "second", "image": "app", "resources": {"requests": _amounts(features)}})
    if features.chance(Feature.INIT_CONTAINERS, 0.3):
        spec["overhead"] = {"cpu": draw.choice(["50m", "1m"]), "memory": draw.choice(["32Mi", "1"])}
    if features.chance(Feature.POD_RESOURCES, 0.5):
        whole = {"cpu": draw.choice(["6", "9"]), "memory": draw.choice(["8Gi", "9Gi"])}
        kept = draw.sample(sorted(whole), draw.choice([1, 2, 2]))
        spec["resources"] = {draw.choice(["requests", "limits"]): {name: whole[name] for name in kept}}


def _init_container(features: Features, at: int, *, sidecar: bool) -> Json:
    container: Json = {"name": f"init-{at}", "image": "app", "resources": {"requests": _amounts(features)}}
    if sidecar:
        container["restartPolicy"] = "Always"
        if features.chance(Feature.HOST_PORTS, 0.4):
            container["ports"] = [{"containerPort": 9090, "hostPort": 443}]
    elif features.chance(Feature.DECLARED_FEATURES, 0.3):
        container |= _RESTART_ALL
    return container


def _toleration(draw: Draw) -> Json:
    kind = draw.choice(["everything", "key", "value", "value", "system"])
    effect = {"effect": draw.choice(EFFECTS)} if draw.chance(0.5) else {}
    key = draw.choice(["dedicated", "spot", "maintenance"])
    if kind == "everything":
        return {"operator": "Exists", **effect}
    if kind == "system":
        return {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", **effect}
    if kind == "key":
        return {"key": key, "operator": "Exists", **effect}
    operator = {} if draw.chance(0.5) else {"operator": "Equal"}
    value = {"value": draw.choice(["yes", "no", "5"])} if draw.chance(0.7) else {}
    return {"key": key, **operator, **value, **effect}


def _affinity(features: Features, workload: RandomWorkload, nodes: Sequence[str]) -> Json:
    draw, affinity = features.draw, {}
    if features.chance(Feature.NODE_AFFINITY, 0.5) or features.chance(Feature.ODD_NUMBERS, 0.5):
        terms = [_node_term(features, nodes) for _ in range(draw.choice([1, 1, 2]))]
        node: Json = {_REQUIRED: {"nodeSelectorTerms": terms}}
        if draw.chance(0.3):
            node[_PREFERRED] = [{"weight": draw.randint(1, 100), "preference": _node_term(features, nodes)}]
        affinity["nodeAffinity"] = node
    for kind in ("podAffinity", "podAntiAffinity"):
        if features.chance(Feature.POD_AFFINITY, 0.4):
            terms = [_pod_term(features, workload) for _ in range(draw.choice([1, 1, 2]))]
            preferred = [{"weight": draw.randint(1, 100), "podAffinityTerm": _pod_term(features, workload)}]
            affinity[kind] = {_REQUIRED: terms, **({_PREFERRED: preferred} if draw.chance(0.2) else {})}
    return affinity


def _node_term(features: Features, nodes: Sequence[str]) -> Json:
    """Sometimes an empty one, which matches no node."""
    draw = features.draw
    if draw.chance(0.04):
        return {}
    term: Json = {}
    if draw.chance(0.85):
        term["matchExpressions"] = [_node_requirement(features) for _ in range(draw.choice([1, 1, 2]))]
    if not term or draw.chance(0.15):
        operator = draw.choice(["In", "In", "NotIn"])
        term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [draw.choice(list(nodes))]}]
    return term


def _node_requirement(features: Features) -> Json:
    draw = features.draw
    if features.chance(Feature.ODD_NUMBERS, 0.6):
        return {"key": "cores", "operator": draw.choice(["Gt", "Lt"]), "values": [draw.choice(_ODD_VALUES)]}
    size = {"key": "cores", "operator": draw.choice(["Gt", "Lt"]), "values": [str(draw.randint(1, 17))]}
    key = draw.choice(["disk", ZONE, "gone", "cores"])
    values = {"disk": ["ssd"], ZONE: ["zone-0", "zone-1"], "gone": ["x"], "cores": ["4", "8"]}[key]
    among = {"key": key, "operator": draw.choice(["In", "In", "NotIn"]), "values": values}
    exists = {"key": key, "operator": draw.choice(["Exists", "DoesNotExist"])}
    return draw.choice([size, among, among, exists])


def _pod_term(features: Features, workload: RandomWorkload) -> Json:
    draw = features.draw
    term: Json = {"topologyKey": draw.choice([HOSTNAME, HOSTNAME, ZONE, "disk"])}
    if not draw.chance(0.04):
        term["labelSelector"] = _selector(draw, "app", (workload.name, "app-0"), "tier", ("web", "work", "data"))
    if draw.chance(0.2):
        term["namespaces"] = draw.sample(NAMESPACES, draw.randint(1, 2))
    if features.chance(Feature.NAMESPACE_SELECTOR, 0.6):
        term["namespaceSelector"] = _selector(draw, "team", ("one", "two"), "stage", ("test",))
    if "labelSelector" in term and draw.chance(0.15):
        term[draw.choice(["matchLabelKeys", "mismatchLabelKeys"])] = ["pod-template-hash"]
    return term


def _selector(draw: Draw, key: str, values: Sequence[str], other: str, others: Sequence[str]) -> Json:
    """Of everything, or by one or two requirements with any operator."""
    if draw.chance(0.06):
        return {}
    if draw.chance(0.5):
        return {"matchLabels": {key: draw.choice(list(values))}}
    requirements = [_label_requirement(draw, key, values)]
    if draw.chance(0.3):
        requirements.append(_label_requirement(draw, other, others))
    return {"matchExpressions": requirements}


def _label_requirement(draw: Draw, key: str, values: Sequence[str]) -> Json:
    operator = draw.choice(["In", "NotIn", "Exists", "DoesNotExist"])
    given = {"values": draw.sample(list(values), draw.randint(1, len(values)))} if operator in ("In", "NotIn") else {}
    return {"key": key, "operator": operator, **given}


def _spread_constraints(draw: Draw, workload: RandomWorkload) -> list[Json]:
    keys = draw.sample([HOSTNAME, ZONE, "disk"], draw.choice([1, 1, 2]))
    return [_spread_constraint(draw, workload, key) for key in keys]


def _spread_constraint(draw: Draw, workload: RandomWorkload, key: str) -> Json:
    hard = draw.chance(0.85)
    constraint: Json = {
        "topologyKey": key,
        "maxSkew": draw.randint(1, 3),
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
    }
    if not draw.chance(0.05):
        constraint["labelSelector"] = _selector(draw, "app", (workload.name, "app-0"), "tier", ("web", "work"))
        if draw.chance(0.3):
            constraint["matchLabelKeys"] = ["pod-template-hash"]
    if hard and draw.chance(0.3):
        constraint["minDomains"] = draw.randint(1, 4)
    for policy in ("nodeTaintsPolicy", "nodeAffinityPolicy"):
        if draw.chance(0.4):
            constraint[policy] = draw.choice(["Honor", "Ignore"])
    return constraint


def _volumes(features: Features, workload: RandomWorkload) -> list[Json]:
    draw = features.draw
    volumes: list[Json] = []
    if features.chance(Feature.BOUND_VOLUMES, 0.6) or features.chance(Feature.UNBOUND_CLAIMS, 0.4):
        for at in range(draw.choice([1, 1, 2])):
            claim = {"claimName": f"{workload.name}-claim-{at}"}
            volumes.append({"name": f"data-{at}", "persistentVolumeClaim": claim})
    if features.chance(Feature.EPHEMERAL_VOLUMES, 0.5):
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": draw.choice([IMMEDIATE, DELAYED, DELAYED, ZONAL, LOCAL]),
            "resources": {"requests": {"storage": "1Gi"}},
        }
        volumes.append({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}})
    if features.chance(Feature.OTHER_VOLUMES, 0.5):
        volumes.append({"name": "other", **_other_source(draw)})
    return volumes


def _other_source(draw: Draw) -> Json:
    sources: list[Json] = [
        {"emptyDir": {}},
        {"hostPath": {"path": "/data"}},
        {"configMap": {"name": "settings"}},
        {"nfs": {"server": "10.9.0.1", "path": "/"}},
        {"csi": {"driver": "inline.example.com"}},
        {"iscsi": {"targetPortal": "10.9.0.1", "iqn": "iqn.2026-11.com.example:disk", "lun": 0}},
        {"gcePersistentDisk": {"pdName": "disk"}},
    ]
    return draw.choice(sources)


def random_pod_status(features: Features, spec: Json, nodes: Sequence[str]) -> Json:
    draw = features.draw
    if "nodeName" not in spec:
        nominated = not spec.get("schedulingGates") and features.chance(Feature.NOMINATED, 0.6)
        return {"phase": "Pending", **({"nominatedNodeName": draw.choice(list(nodes))} if nominated else {})}
    started = timestamp(draw.randint(30, 4000))
    main = {"name": "main", "image": "app", "imageID": "", "restartCount": draw.randint(0, 3), "ready": True}
    main |= {"state": {"running": {"startedAt": started}}, "started": True}
    status: Json = {
        "phase": draw.one_of({"Running": 40, "Pending": 1, "Succeeded": 0.6, "Failed": 0.6}),
        "startTime": started,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": started}],
        "containerStatuses": [main],
    }
    if features.chance(Feature.RESIZE, 0.7):
        _resize(draw, spec, status)
    return status


def _resize(draw: Draw, spec: Json, status: Json) -> None:
    """What the kubelet has allocated and what the container has differ from the spec until the resize is done."""
    (main,) = status["containerStatuses"]
    stated = spec["containers"][0]["resources"]
    names = sorted({"cpu", "memory"} & {name for amounts in stated.values() for name in amounts})
    if draw.chance(0.8):
        main["allocatedResources"] = {name: _resized(draw, name) for name in names}
    if draw.chance(0.8):
        main["resources"] = {"requests": {name: _resized(draw, name) for name in names}}
    kind, reason = draw.choice(
        [
            ("PodResizePending", "Infeasible"),
            ("PodResizePending", "Infeasible"),
            ("PodResizePending", "Deferred"),
            ("PodResizeInProgress", ""),
        ]
    )
    condition: Json = {"type": kind, "status": "True", "lastTransitionTime": timestamp(20)}
    status["conditions"].append(condition | ({"reason": reason} if reason else {}))
    if "resources" in spec and draw.chance(0.6):
        status["allocatedResources"] = {name: _resized(draw, name) for name in ("cpu", "memory")}
        status["resources"] = {"requests": {name: _resized(draw, name) for name in ("cpu", "memory")}}
    if draw.chance(0.2) and (sidecars := _sidecars(spec)):
        amounts = {"cpu": draw.choice(CPU), "memory": draw.choice(MEMORY)}
        waiting = {"image": "app", "imageID": "", "restartCount": 0, "ready": True, "allocatedResources": amounts}
        status["initContainerStatuses"] = [{"name": name, **waiting} for name in sidecars]


def _resized(draw: Draw, name: str) -> str:
    return draw.choice(CPU if name == "cpu" else MEMORY)


def _sidecars(spec: Mapping[str, object]) -> list[str]:
    init_containers = spec.get("initContainers", [])
    assert isinstance(init_containers, list)
    return [each["name"] for each in init_containers if each.get("restartPolicy") == "Always"]
