"""Finds pods by what people remember: a name, its beginning, or the workload they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest

from reactor.cluster.pod_names import near_names, owners_of
from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.decision.eligibility import Eligibility
from reactor.web.pod_page import fixed_text, workload_text
from reactor.web.query import FindQuery
from reactor.web.view import FoundPod, FoundPods


def find_pods(wanted: FindQuery, eligibility: Eligibility) -> FoundPods:
    """Unhappiest first. The first of these that finds any: the pod of this name, the pods of the workload of this name,
    and the pods whose names begin so."""
    cluster = eligibility.snapshot.cluster
    pods = [pod for pod in cluster.pods.values() if wanted.namespace in ("", pod.namespace)]
    found = _of_name(pods, wanted) or _of_workload(pods, wanted, cluster) or _of_prefix(pods, wanted)
    if not found:
        return FoundPods((), 0, near_names(wanted.name, cluster, wanted.namespace, wanted.kind))
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
    return [pod for pod in pods if any(_is_named(*one, wanted) for one in owners_of(pod, cluster))]


def _of_prefix(pods: Iterable[Pod], wanted: FindQuery) -> list[Pod]:
    return [pod for pod in pods if wanted.kind in ("", "Pod") and pod.name.startswith(wanted.name)]


def _is_named(kind: str, name: str, wanted: FindQuery) -> bool:
    return name == wanted.name and wanted.kind in ("", kind)


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
