"""Names that users may have meant: those of pods and of their workloads."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView

MOST = 3


def owners_of(pod: Pod, cluster: ClusterView) -> Iterable[tuple[str, str]]:
    """Kind and name of the pod's owner and of the owner's owner. Files may contain a ReplicaSet's pods without its
    Deployment: then its name is taken from the ReplicaSet's."""
    if pod.owner is None:
        return
    yield pod.owner.kind, pod.owner.name
    top = cluster.workload_of(pod)
    if top is not None and top.uid != pod.owner.uid:
        yield top.kind, top.name
    elif pod.owner.kind == "ReplicaSet" and "pod-template-hash" in pod.labels:
        yield "Deployment", pod.owner.name.removesuffix(f"-{pod.labels['pod-template-hash']}")


def near_names(wanted: str, cluster: ClusterView, namespace: str = "", kind: str = "") -> tuple[str, ...]:
    """Similar names, as `namespace/name`: of this namespace, else of others. Without a kind of pods and workloads."""
    within = [pod for pod in cluster.pods.values() if namespace in ("", pod.namespace)]
    return _near(wanted, within, cluster, kind) or _near(wanted, cluster.pods.values(), cluster, kind)


def _near(wanted: str, pods: Iterable[Pod], cluster: ClusterView, kind: str) -> tuple[str, ...]:
    names: dict[str, str] = {}
    for pod in pods:
        if kind in ("", "Pod"):
            names.setdefault(pod.name, pod.key)
        *_, (owner, name) = ("", ""), *owners_of(pod, cluster)
        if name and kind in ("", owner):
            names.setdefault(name, f"{pod.namespace}/{name}")
    containing = sorted(name for name in names if wanted in name)
    similar = get_close_matches(wanted, names, MOST)
    return tuple(dict.fromkeys(names[name] for name in (*containing, *similar)))[:MOST]
