"""Random clusters as `kubectl get ... -o json` prints them, with settings and a history of moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from loadtests.same_plans.draw import GIB, PLANNERS, Draw, Json, random_parameters
from loadtests.same_plans.random_objects import (
    NAMESPACES,
    RandomWorkload,
    metadata,
    namespace_object,
    node_object,
    pod_events,
    pod_metadata,
    pod_spec,
    pod_status,
    timestamp,
    volume_object,
)


def random_snapshot(number: int) -> Json:
    draw = Draw(f"snapshot {number}")
    planner = draw.one_of({name: 8.0 if name == "stable" else 1.0 for name in PLANNERS if name != "latency"})
    cluster = Cluster(draw)
    cluster.fill()
    return {
        "documents": cluster.documents(),
        "settings": _random_settings(draw, planner, cluster.node_names),
        "history": _random_history(draw, cluster),
    }


def _random_settings(draw: Draw, planner: str, nodes: Sequence[str]) -> Json:
    """Mostly the defaults; each setting sometimes has another value."""
    return {
        "happiness": _some_of(
            draw,
            {
                "threshold": draw.choice([0.7, 0.8, 0.95]),
                "namespaces": {"shop": 0.97},
                "halfLife": draw.choice(["1m", "10m"]),
                "goodwill": draw.choice([0, 1, 10]),
            },
        ),
        "decision": _some_of(
            draw,
            {
                "minimumFailures": draw.choice([0, 1, 5]),
                "cooldown": draw.choice(["10s", "5m"]),
                "settle": draw.choice(["10s", "5m"]),
                "nodePressure": draw.choice([0.4, 0.6, 0.95]),
                "placementProbability": draw.choice([0.0, 0.1, 0.8]),
            },
        ),
        "planner": {
            "name": planner,
            "parameters": random_parameters(draw, planner, [{"name": name} for name in nodes]),
            "scope": draw.choice(["cluster", "affected", "unhappy"]),
            **_some_of(
                draw,
                {
                    "inertia": draw.choice([0, 0.05, 0.2]),
                    "headroom": draw.choice([0, 0.05, 0.3]),
                    "softWeight": draw.choice([0, 0.5]),
                    "maxMoves": draw.randint(1, 3),
                    "maxMovesPerWorkload": 1,
                    "maxMovesPerNode": draw.randint(1, 2),
                    "maxMovesPerNamespace": draw.randint(1, 3),
                },
            ),
        },
        "managed": _some_of(draw, {"namespaces": ["shop", "store"], "labelSelector": "tier in (web, data)"}, 0.07),
        "execution": _some_of(draw, {"allowLocalData": True, "reservation": "1m"}),
        "metrics": _some_of(draw, {"freshness": draw.choice(["30s", "10m"])}),
    }


def _some_of(draw: Draw, values: Json, probability: float = 0.2) -> Json:
    return {name: value for name, value in values.items() if draw.chance(probability)}


def _random_history(draw: Draw, cluster: Cluster) -> Json:
    """Moves and cooldowns, in seconds before the snapshot. Two in three clusters have none, as in a dump."""
    history: Json = {"trigger": draw.one_of({"demand": 4, "unhappy": 1}), "needs": ""}
    history |= {"moved": {}, "relieved": {}, "resting": {}, "unbound": {}, "runs": []}
    if draw.chance(0.1):
        history["needs"] = draw.choice(["metrics", "requests"])
    if draw.chance(0.35):
        codes = ["noBetterPlace", "observed", "disruptionBudget", "evictionFailed"]
        failing = draw.some(cluster.failing, 2)
        history["moved"] = {uid: [draw.amount(1, 200, 1), draw.randint(1, 3)] for uid in draw.some(failing, 1)}
        history["relieved"] = {node: draw.amount(1, 120, 1) for node in draw.some(cluster.node_names, 2)}
        history["resting"] = {uid: [draw.amount(-20, 60, 1), draw.choice(codes)] for uid in failing}
        history["unbound"] = {uid: draw.amount(-5, 5, 1) for uid in draw.some(cluster.pending, 1)}
        history["runs"] = [
            _random_move(draw, cluster, uid) for uid in draw.some(cluster.running, 1) if draw.chance(0.7)
        ]
    return history


def _random_move(draw: Draw, cluster: Cluster, uid: str) -> Json:
    return {
        "uid": uid,
        "target": draw.choice(cluster.node_names),
        "stage": draw.choice(["planned", "evicted", "bound", "late"]),
        "ago": draw.amount(1, 200, 1),
        "replacement": draw.choice(cluster.pending) if cluster.pending and draw.chance(0.5) else None,
    }


@dataclass
class Cluster:
    """A cluster that is being filled: its objects by kind, and the pods and nodes that the history can name."""

    draw: Draw
    objects: dict[str, list[Json]] = field(default_factory=dict)
    node_names: list[str] = field(default_factory=list)
    used: dict[str, list[float]] = field(default_factory=dict)
    """By node: cores and bytes that its pods use."""
    running: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)
    measured: bool = True
    equal_sizes: bool = False
    """Nodes have the same room and many pods use the same, so that ties have to be broken."""

    def fill(self) -> None:
        draw = self.draw
        self.measured, self.equal_sizes = draw.chance(0.87), draw.chance(0.3)
        self.node_names = [f"worker-{at}" for at in range(draw.randint(3, 8))]
        self.used = {name: [0.0, 0.0] for name in self.node_names}
        for name in (*NAMESPACES, "kube-system"):
            self.add("Namespace", "v1", namespace_object(draw, name))
        for at in range(draw.randint(3, 7)):
            self._add_workload(at)
        for at, name in enumerate(self.node_names):
            self.add(
                "Node", "v1", node_object(draw, name, at, cores=4 if self.equal_sizes else draw.choice([2, 2, 4, 4, 8]))
            )
            self.measure_node(name)

    def documents(self) -> list[Json]:
        """One List of all objects, and one for each kind of metrics. Sometimes a whole kind is missing."""
        lists = []
        for kind in ("PodMetrics", "NodeMetrics"):
            items = self.objects.pop(kind, [])
            if self.measured:
                lists.append({"kind": f"{kind}List", "apiVersion": "metrics.k8s.io/v1beta1", "items": items})
        missing = [kind for kind in ("ReplicaSet", "Namespace") if self.draw.chance(0.06)]
        items = [each for kind, objects in self.objects.items() if kind not in missing for each in objects]
        return [{"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}, *lists]

    def add(self, kind: str, version: str, content: Json) -> None:
        self.objects.setdefault(kind, []).append({"kind": kind, "apiVersion": version, **content})

    def _add_workload(self, at: int) -> None:
        draw = self.draw
        workload = RandomWorkload.random(draw, at)
        for kind, content in workload.objects(draw):
            self.add(kind, "batch/v1" if kind == "Job" else "apps/v1", content)
        replicas = len(self.node_names) if workload.kind == "DaemonSet" else draw.choice([1, 2, 2, 3, 4, 5])
        spec = pod_spec(draw, workload, self.node_names)
        for number in range(replicas):
            self._add_pod(workload, spec, number)
        if draw.chance(0.3):
            self.add_pdbs(workload)
        if spec.get("volumes"):
            self._add_storage(workload)

    def _add_pod(self, workload: RandomWorkload, template: Json, number: int) -> None:
        draw, uid = self.draw, f"uid-{workload.name}-{number}"
        node = self.pick_node(workload, number)
        status = pod_status(draw, node)
        spec = {**template, "nodeName": node} if node else dict(template)
        if node is None and draw.chance(0.15):
            spec["schedulingGates"] = [{"name": "example.com/wait"}]
        pod = {"metadata": pod_metadata(draw, workload, number, uid), "spec": spec, "status": status}
        self.add("Pod", "v1", pod)
        if node is None:
            self.pending.append(uid)
            return
        self.running += [uid] * (workload.kind in ("ReplicaSet", "StatefulSet"))
        self.measure_pod(pod, node)
        if draw.chance(0.5):
            self.failing.append(uid)
            for event in pod_events(draw, pod):
                self.add("Event", "v1", event)

    def pick_node(self, workload: RandomWorkload, number: int) -> str | None:
        """The first nodes get more pods, so that the load is uneven."""
        if workload.kind == "DaemonSet":
            return self.node_names[number]
        if self.draw.chance(0.08):
            return None
        if self.draw.chance(0.01):
            return "worker-gone"
        return self.node_names[int(len(self.node_names) * self.draw.random() ** 1.8)]

    def measure_pod(self, pod: Json, node: str) -> None:
        draw, meta = self.draw, pod["metadata"]
        digits = 0 if self.equal_sizes else 3
        cores, memory = draw.amount(0.02, 1.5, digits), draw.amount(0.05, 2.0, digits) * GIB
        if node in self.used:
            self.used[node][0] += cores
            self.used[node][1] += memory
        if draw.chance(0.04):
            return
        usage = {"cpu": f"{round(cores * 1e9)}n", "memory": f"{round(memory / 1024)}Ki"}
        if draw.chance(0.03):
            del usage["memory"]
        metrics = {
            "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
            "timestamp": timestamp(_random_sample_age(draw)),
            "window": "15s",
            "containers": [{"name": "main", "usage": usage}],
        }
        self.add("PodMetrics", "metrics.k8s.io/v1beta1", metrics)

    def measure_node(self, name: str) -> None:
        """Some nodes have no metrics."""
        draw, (cores, memory) = self.draw, self.used[name]
        if draw.chance(0.1):
            return
        if not self.equal_sizes:
            cores, memory = cores + draw.amount(0.0, 0.5), memory + draw.amount(0.1, 1.0) * GIB
        metrics = {
            "metadata": {"name": name},
            "timestamp": timestamp(_random_sample_age(draw)),
            "window": "15s",
            "usage": {"cpu": f"{round(cores * 1000)}m", "memory": f"{round(memory / 2**20)}Mi"},
        }
        self.add("NodeMetrics", "metrics.k8s.io/v1beta1", metrics)

    def add_pdbs(self, workload: RandomWorkload) -> None:
        for number in range(self.draw.choice([1, 1, 1, 2])):
            pdb = {
                "metadata": metadata(f"{workload.name}-budget-{number}", workload.namespace),
                "spec": {"selector": {"matchLabels": {"app": workload.name}}, "minAvailable": 1},
                "status": {"disruptionsAllowed": self.draw.choice([0, 1, 2])},
            }
            self.add("PodDisruptionBudget", "policy/v1", pdb)

    def _add_storage(self, workload: RandomWorkload) -> None:
        """The PVC may be missing, unbound, ReadWriteOncePod, or bound to a PV that does not exist."""
        draw, claim, volume = self.draw, f"{workload.name}-claim", f"{workload.name}-volume"
        if draw.chance(0.1):
            return
        spec = {"accessModes": [draw.choice(["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"])]}
        bound = {} if draw.chance(0.1) else {"volumeName": volume}
        meta = metadata(claim, workload.namespace) | ({"deletionTimestamp": timestamp(5)} if draw.chance(0.05) else {})
        if bound:
            meta |= {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        self.add("PersistentVolumeClaim", "v1", {"metadata": meta, "spec": {**spec, **bound}})
        if draw.chance(0.9):
            self.add("PersistentVolume", "v1", volume_object(draw, volume, self.node_names))


def _random_sample_age(draw: Draw) -> int:
    """In seconds; few samples are stale."""
    return int(draw.one_of({"5": 10, "15": 10, "40": 5, "500": 1}))
