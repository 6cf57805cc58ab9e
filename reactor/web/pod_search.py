"""Finds pods by what people remember: a name, its beginning, or the workload they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from heapq import nsmallest

from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.decision.eligibility import Eligibility
from reactor.web.pod_page import fixed_text, workload_text
from reactor.web.query import FindQuery
from reactor.web.view import FoundPod, FoundPods

NEAR_NAMES = 3


def find_pods(wanted: FindQuery, eligibility: Eligibility) -> FoundPods:
    """Unhappiest first. The first of these that finds any: the pod of this name, the pods of the workload of this name,
    and the pods whose names begin so."""
    cluster = eligibility.snapshot.cluster
    pods = [pod for pod in cluster.pods.values() if wanted.namespace in ("", pod.namespace)]
    found = _of_name(pods, wanted) or _of_workload(pods, wanted, cluster) or _of_prefix(pods, wanted)
    if not found:
        elsewhere = cluster.pods.values() if wanted.namespace else ()
        return FoundPods((), 0, _near(pods, wanted, cluster) or _near(elsewhere, wanted, cluster))
    return found_pods(found, eligibility, wanted.limit)


def found_pods(pods: Sequence[Pod], eligibility: Eligibility, limit: int) -> FoundPods:
    first = nsmallest(limit, pods, key=lambda pod: (*eligibility.snapshot.happiness_rank(pod), pod.key))
    return FoundPods(tuple(_found(pod, eligibility) for pod in first), len(pods), ())


def _of_name(pods: Iterable[Pod], wanted: FindQuery) -> list[Pod]:
    if wanted.kind not in ("", "Pod"):
        return []
    found = [pod for pod in pods if pod.name == wanted.name]
    return [pod for pod in found if pod.namespace == "default"] or found


def _of_workload(pods: Iterable[Pod], wanted: FindQuery, cluster: ClusterView) -> list[Pod]:
    return [pod for pod in pods if any(_is_named(*one, wanted) for one in _workloads(pod, cluster))]


def _of_prefix(pods: Iterable[Pod], wanted: FindQuery) -> list[Pod]:
    return [pod for pod in pods if wanted.kind in ("", "Pod") and pod.name.startswith(wanted.name)]


def _workloads(pod: Pod, cluster: ClusterView) -> Iterable[tuple[str, str]]:
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


def _is_named(kind: str, name: str, wanted: FindQuery) -> bool:
    return name == wanted.name and wanted.kind in ("", kind)


def _near(pods: Iterable[Pod], wanted: FindQuery, cluster: ClusterView) -> tuple[str, ...]:
    names: dict[str, str] = {}
    for pod in pods:
        if wanted.kind in ("", "Pod"):
            names.setdefault(pod.name, pod.key)
        *_, (kind, name) = ("", ""), *_workloads(pod, cluster)
        if name and wanted.kind in ("", kind):
            names.setdefault(name, f"{pod.namespace}/{name}")
    within = sorted(name for name in names if wanted.name in name)
    similar = get_close_matches(wanted.name, names, NEAR_NAMES)
    return tuple(dict.fromkeys(names[name] for name in (*within, *similar)))[:NEAR_NAMES]


def _found(pod: Pod, eligibility: Eligibility) -> FoundPod:
    snapshot = eligibility.snapshot
    failing = snapshot.happiness.get(pod.uid)
    probed = pod.node is not None and any(container.liveness for container in pod.containers)
    return FoundPod(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        node=pod.node,
        phase=pod.status,
        ready=pod.ready,
        workload=workload_text(pod, snapshot.cluster),
        happiness=failing.probability if failing else 1.0 if probed else None,
        happy=failing is None or not failing.unhappy,
        fixed=fixed_text(pod, eligibility),
    )
