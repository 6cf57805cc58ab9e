"""Random claims and volumes in every state that kube-scheduler tells apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from loadtests.oracle.random_features import Feature, Features
from loadtests.oracle.random_nodes import DRIVERS
from loadtests.same_plans.draw import HOSTNAME, REGION, ZONE, Json
from loadtests.same_plans.random_objects import metadata, timestamp

_BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
IMMEDIATE, DELAYED, ZONAL, LOCAL = "immediate", "delayed", "zonal", "local"


def storage_classes() -> list[Json]:
    zone = {"matchLabelExpressions": [{"key": ZONE, "values": ["zone-0", "zone-1"]}]}
    return [
        _storage_class(IMMEDIATE, DRIVERS[0], "Immediate"),
        _storage_class(DELAYED, DRIVERS[0], "WaitForFirstConsumer"),
        _storage_class(ZONAL, DRIVERS[1], "WaitForFirstConsumer") | {"allowedTopologies": [zone]},
        _storage_class(LOCAL, "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
    ]


def _storage_class(name: str, provisioner: str, mode: str) -> Json:
    return {"metadata": metadata(name), "provisioner": provisioner, "volumeBindingMode": mode}


@dataclass(slots=True)
class Storage:
    """The claims and volumes that the pods of a cluster use."""

    features: Features
    nodes: Sequence[str]
    claims: list[Json] = field(default_factory=list)
    volumes: list[Json] = field(default_factory=list)

    def shared_claim(self, name: str, namespace: str) -> None:
        """A claim that a pod's template names."""
        draw = self.features.draw
        if draw.chance(0.04):
            return
        modes = [draw.choice(["ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"])]
        self._claim(metadata(name, namespace), modes)

    def ephemeral_claim(self, volume: str, pod: Json, spec: Json) -> None:
        """The claim of a generic ephemeral volume; of a pending pod it may be missing, or somebody else's."""
        draw, meta = self.features.draw, pod["metadata"]
        pending = "nodeName" not in pod["spec"]
        if pending and draw.chance(0.2):
            return
        claim = metadata(f"{meta['name']}-{volume}", meta["namespace"])
        if not (pending and draw.chance(0.15)):
            owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
            claim["ownerReferences"] = [{**owner, "blockOwnerDeletion": True}]
        self._claim(claim, spec["accessModes"], spec["storageClassName"], bound=not pending or draw.chance(0.5))

    def _claim(self, meta: Json, modes: list[str], storage_class: str = "", *, bound: bool | None = None) -> None:
        draw = self.features.draw
        volume = f"pv-{len(self.volumes)}"
        if bound is None:
            bound = not self.features.chance(Feature.UNBOUND_CLAIMS, 0.4)
        named = storage_class or draw.choice([IMMEDIATE, DELAYED, ZONAL, LOCAL])
        spec: Json = {"accessModes": modes, "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": named}
        if bound:
            spec["volumeName"] = volume
            self._volume(volume, meta, spec)
        annotations = dict(_BOUND) if bound and not draw.chance(0.06) else {}
        if not bound and draw.chance(0.1):
            annotations["volume.kubernetes.io/selected-node"] = draw.choice(list(self.nodes))
        phase = "Bound" if bound else "Pending"
        if bound and draw.chance(0.05):
            phase = "Lost"
        deleted = {"deletionTimestamp": timestamp(5)} if draw.chance(0.03) else {}
        claim = {"metadata": {**meta, "annotations": annotations, **deleted}, "spec": spec, "status": {"phase": phase}}
        self.claims.append(claim)

    def _volume(self, name: str, claim: Json, wanted: Json) -> None:
        draw = self.features.draw
        if draw.chance(0.04):
            return
        labels: Json = {}
        if draw.chance(0.3):
            labels[ZONE] = draw.choice(["zone-0", "zone-1", "zone-0__zone-2", "zone-9"])
        if draw.chance(0.1):
            labels[draw.choice([REGION, "failure-domain.beta.kubernetes.io/zone"])] = draw.choice(["here", "zone-0"])
        spec: Json = {
            "capacity": {"storage": "1Gi"},
            "accessModes": wanted["accessModes"],
            "storageClassName": wanted["storageClassName"],
            "claimRef": {"namespace": claim["namespace"], "name": claim["name"], "uid": claim["uid"]},
            **self._source(name),
        }
        if "gcePersistentDisk" in spec:
            # Its zones have to be zones of Google's.
            labels = {key: "us-central1-a__us-central1-b" if "__" in zone else zone for key, zone in labels.items()}
        if "local" in spec or draw.chance(0.35):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": self._terms()}}
        meta = {**metadata(name), "labels": labels}
        self.volumes.append({"metadata": meta, "spec": spec, "status": {"phase": "Bound"}})

    def available_volumes(self) -> None:
        """Local volumes that wait for a claim."""
        draw = self.features.draw
        for _ in range(draw.randint(0, 2) if Feature.UNBOUND_CLAIMS in self.features.used else 0):
            spec: Json = {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": LOCAL}
            spec |= {"local": {"path": "/disk"}, "nodeAffinity": {"required": {"nodeSelectorTerms": self._terms()}}}
            meta = metadata(f"pv-{len(self.volumes)}")
            self.volumes.append({"metadata": meta, "spec": spec, "status": {"phase": "Available"}})

    def attachments(self) -> list[Json]:
        """Volumes that are attached to a node, with a pod there or without one (yet, or any more)."""
        draw = self.features.draw
        if Feature.VOLUME_LIMITS not in self.features.used:
            return []
        return [
            {
                "metadata": metadata(f"attached-{at}"),
                "spec": {
                    "attacher": volume["spec"]["csi"]["driver"],
                    "nodeName": draw.choice(list(self.nodes)),
                    "source": {"persistentVolumeName": volume["metadata"]["name"]},
                },
                "status": {"attached": True},
            }
            for at, volume in enumerate(self.volumes)
            if "csi" in volume["spec"] and draw.chance(0.4)
        ]

    def _source(self, name: str) -> Json:
        draw = self.features.draw
        if draw.chance(0.12):
            return {"local": {"path": "/disk"}}
        if draw.chance(0.1):
            return draw.choice(
                [{"gcePersistentDisk": {"pdName": name}}, {"awsElasticBlockStore": {"volumeID": f"vol-{name}"}}]
            )
        # Two volumes with one handle are one volume to the driver.
        handle = draw.choice([name, name, name, "shared-handle"])
        return {"csi": {"driver": draw.choice(DRIVERS), "volumeHandle": handle}}

    def _terms(self) -> list[Json]:
        draw = self.features.draw
        by_host = {"key": HOSTNAME, "operator": "In", "values": draw.sample(list(self.nodes), 2)}
        by_zone = {"key": ZONE, "operator": draw.choice(["In", "NotIn"]), "values": ["zone-0"]}
        by_size = {"key": "cores", "operator": draw.choice(["Gt", "Lt"]), "values": [str(draw.randint(2, 16))]}
        requirements = draw.sample([by_host, by_zone, by_size], draw.choice([1, 1, 2]))
        return [{"matchExpressions": [each]} for each in requirements]
