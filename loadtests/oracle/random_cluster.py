"""A random cluster that a real API server accepts, as the objects of `kubectl get ... -o json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.oracle.random_features import Feature, Features
from loadtests.oracle.random_nodes import random_csi_nodes, random_node
from loadtests.oracle.random_pods import random_pod_spec, random_pod_status
from loadtests.oracle.random_storage import Storage, storage_classes
from loadtests.same_plans.draw import Draw, Json
from loadtests.same_plans.random_clusters import Cluster
from loadtests.same_plans.random_objects import (
    NAMESPACES,
    RandomWorkload,
    namespace_object,
    pod_events,
    pod_metadata,
    timestamp,
)

_STORAGE_VERSION = "storage.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class RandomCluster:
    seed: int
    features: tuple[Feature, ...]
    items: tuple[Json, ...]


def random_cluster(seed: int) -> RandomCluster:
    draw = Draw(f"oracle {seed}")
    features = Features.random(draw)
    return RandomCluster(seed, tuple(sorted(features.used)), tuple(_Filling(features).items()))


class _Filling:
    def __init__(self, features: Features) -> None:
        draw = features.draw
        self._features = features
        self._cluster = Cluster(draw, node_names=[f"worker-{at}" for at in range(draw.randint(4, 9))])
        self._cluster.used = {name: [0.0, 0.0] for name in self._cluster.node_names}
        self._storage = Storage(features, self._cluster.node_names)

    def items(self) -> Sequence[Json]:
        draw, cluster = self._features.draw, self._cluster
        for at, name in enumerate(cluster.node_names):
            cluster.add("Node", "v1", random_node(self._features, name, at))
        for csi_node in random_csi_nodes(self._features, cluster.node_names):
            cluster.add("CSINode", _STORAGE_VERSION, csi_node)
        for name in (*NAMESPACES, "kube-system"):
            namespace = namespace_object(draw, name)
            if draw.chance(0.2):
                namespace["metadata"]["labels"]["stage"] = "test"
            cluster.add("Namespace", "v1", namespace)
        for at in range(draw.randint(4, 9)):
            self._add_workload(at)
        for name in cluster.node_names:
            cluster.measure_node(name)
        self._add_storage()
        return [each for objects in cluster.objects.values() for each in objects]

    def _add_workload(self, at: int) -> None:
        draw, cluster = self._features.draw, self._cluster
        workload = RandomWorkload.random(draw, at)
        for kind, content in workload.objects(draw):
            cluster.add(kind, "batch/v1" if kind == "Job" else "apps/v1", content)
        spec = random_pod_spec(self._features, workload, cluster.node_names)
        replicas = len(cluster.node_names) if workload.kind == "DaemonSet" else draw.choice([1, 2, 3, 4, 5, 6])
        for number in range(replicas):
            self._add_pod(workload, spec, number)
        for volume in spec.get("volumes", ()):
            if "persistentVolumeClaim" in volume:
                self._storage.shared_claim(volume["persistentVolumeClaim"]["claimName"], workload.namespace)
        if draw.chance(0.2):
            cluster.add_pdbs(workload)

    def _add_pod(self, workload: RandomWorkload, template: Json, number: int) -> None:
        features, draw, cluster = self._features, self._features.draw, self._cluster
        node = None if draw.chance(0.1) else cluster.pick_node(workload, number)
        spec = {**template, "nodeName": node} if node else dict(template)
        if node is None and draw.chance(0.05):
            spec["schedulingGates"] = [{"name": "example.com/wait"}]
        meta = pod_metadata(draw, workload, number, f"uid-{workload.name}-{number}")
        meta.pop("deletionTimestamp", None)
        if node is None:
            meta["annotations"].pop("kubernetes.io/config.mirror", None)
        if node is not None and features.chance(Feature.TERMINATING, 0.15):
            meta |= {"deletionTimestamp": timestamp(3), "deletionGracePeriodSeconds": 30}
        pod: Json = {"metadata": meta, "spec": spec}
        pod["status"] = random_pod_status(features, spec, cluster.node_names)
        for volume in spec.get("volumes", ()):
            if "ephemeral" in volume:
                wanted = volume["ephemeral"]["volumeClaimTemplate"]["spec"]
                self._storage.ephemeral_claim(volume["name"], pod, wanted)
        cluster.add("Pod", "v1", pod)
        if node is not None:
            cluster.measure_pod(pod, node)
            if draw.chance(0.4):
                for event in pod_events(draw, pod):
                    cluster.add("Event", "v1", event)

    def _add_storage(self) -> None:
        self._storage.available_volumes()
        for storage_class in storage_classes():
            self._cluster.add("StorageClass", _STORAGE_VERSION, storage_class)
        for claim in self._storage.claims:
            self._cluster.add("PersistentVolumeClaim", "v1", claim)
        for attachment in self._storage.attachments():
            self._cluster.add("VolumeAttachment", _STORAGE_VERSION, attachment)
        for volume in self._storage.volumes:
            self._cluster.add("PersistentVolume", "v1", volume)
