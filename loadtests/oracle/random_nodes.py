"""Random nodes that a real API server accepts, and their CSINodes."""

from __future__ import annotations

from collections.abc import Iterator

from loadtests.oracle.random_features import Feature, Features
from loadtests.same_plans.draw import EFFECTS, GIB, HOSTNAME, REGION, ZONE, Json, node_labels
from loadtests.same_plans.random_objects import metadata, timestamp

DRIVERS = ("disk.example.com", "files.example.com")
IN_TREE = {"pd.csi.storage.gke.io": "kubernetes.io/gce-pd", "ebs.csi.aws.com": "kubernetes.io/aws-ebs"}
"""Drivers that have taken over the volumes of an in-tree plugin."""
ODD_LABELS = ("4.5", "many", "007", "1_0", "1e3", "0x10", "9223372036854775808", "12")
DECLARED = ("InPlacePodLevelResourcesVerticalScaling", "RestartAllContainersOnContainerExits")
_NOT_READY = "node.kubernetes.io/not-ready"


def random_node(features: Features, name: str, at: int) -> Json:
    draw = features.draw
    labels = node_labels(draw, name, at)
    if features.chance(Feature.ODD_NUMBERS, 0.6):
        labels["cores"] = draw.choice(ODD_LABELS)
    if draw.chance(0.05):
        labels.pop(draw.choice([HOSTNAME, REGION, "disk", "cores"]), None)
    if draw.chance(0.3) and ZONE in labels:
        labels["topology.gke.io/zone"] = labels[ZONE]
    ready, cordoned = not draw.chance(0.04), features.chance(Feature.CORDONED, 0.3)
    resources = _allocatable(features)
    status: Json = {
        "allocatable": resources,
        "capacity": resources,
        "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": f"10.1.0.{at + 1}"}],
        "conditions": [{"type": "Ready", "status": str(ready), "lastHeartbeatTime": timestamp(draw.randint(0, 20))}],
    }
    if features.chance(Feature.DECLARED_FEATURES, 0.5):
        status["declaredFeatures"] = sorted(draw.sample(DECLARED, draw.randint(1, len(DECLARED))))
    return {
        "metadata": metadata(name) | {"labels": labels, "annotations": {"rematch.io/bandwidth-bps": "1G"}},
        "spec": {"unschedulable": cordoned, "taints": _taints(features, ready=ready, cordoned=cordoned)},
        "status": status,
    }


def _allocatable(features: Features) -> Json:
    draw = features.draw
    cores = draw.choice([1, 2, 4, 8, 8])
    memory = int(cores * 2 * GIB) + draw.choice([0, 0, 1, -1, 512])
    resources: Json = {"cpu": draw.choice([str(cores), f"{cores * 1000}m", f"{cores * 1000 - 100}m"])}
    resources["memory"] = draw.choice([str(memory), f"{cores * 2}Gi", f"{cores * 2048 - 256}Mi"])
    if features.chance(Feature.HUGE_NODES, 0.4):
        resources |= {"cpu": "1920", "memory": draw.choice(["6Ti", "6597069766657"])}
    elif features.chance(Feature.HUGE_NODES, 0.2):
        resources |= {"cpu": "250m", "memory": draw.choice(["64Mi", "67108863"])}
    resources["ephemeral-storage"] = draw.choice(["20Gi", "5G"])
    if not features.chance(Feature.NO_POD_COUNT, 0.3):
        resources["pods"] = str(draw.choice([110, 110, 110, 110, 110, 110, 6, 3, 0]))
    if features.chance(Feature.EXTENDED_RESOURCES, 0.6):
        resources |= {"nvidia.com/gpu": str(draw.randint(0, 2)), "hugepages-2Mi": draw.choice(["0", "64Mi", "128Mi"])}
    return resources


def _taints(features: Features, *, ready: bool, cordoned: bool) -> list[Json]:
    """The control plane taints nodes that are not ready or cordoned; for a moment it has not done so yet."""
    draw = features.draw
    taints: list[Json] = []
    if not ready and draw.chance(0.8):
        taints += [{"key": _NOT_READY, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    if cordoned and draw.chance(0.7):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    if features.chance(Feature.TAINTS, 0.5):
        for key in draw.sample(["dedicated", "spot", "maintenance"], draw.choice([1, 1, 2])):
            value = {"value": draw.choice(["yes", "no", "5"])} if draw.chance(0.6) else {}
            taints.append({"key": key, "effect": draw.choice(EFFECTS), **value})
    return taints


def random_csi_nodes(features: Features, nodes: list[str]) -> Iterator[Json]:
    """How many volumes of a driver a node takes; some drivers set no limit, some nodes have no driver."""
    draw = features.draw
    for node in nodes if Feature.VOLUME_LIMITS in features.used else []:
        if draw.chance(0.15):
            continue
        drivers = [
            {"name": name, "nodeID": node, "topologyKeys": [ZONE], **_limit(features)}
            for name in draw.sample((*DRIVERS, *IN_TREE), draw.choice([1, 2, 3, 4]))
        ]
        migrated = ",".join(IN_TREE.values())
        annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if draw.chance(0.8) else {}
        yield {"metadata": {**metadata(node), "annotations": annotations}, "spec": {"drivers": drivers}}


def _limit(features: Features) -> Json:
    draw = features.draw
    return {} if draw.chance(0.2) else {"allocatable": {"count": draw.choice([0, 1, 1, 2, 3])}}
