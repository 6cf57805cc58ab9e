"""A view that takes over the indexes of an earlier one answers as one that builds its own."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from matching.problem import PodTerm, Rules, Selector
from reactor.cluster.kinds import Kind
from reactor.cluster.mirror import ClusterMirror
from reactor.cluster.records import Namespace, Pod
from reactor.cluster.view import ClusterView
from tests.support.cluster import make_node, make_owner, make_pod

APART = Rules(pod_anti_affinity=(PodTerm("host", Selector()),))
NODES = ("n1", "n2", "n3")
OWNERS = tuple(make_owner(name) for name in ("web", "db"))

pods = st.builds(
    lambda name, node, owner, nominated, rules, phase, namespace: make_pod(
        name, node=node, owner=owner, nominated_node=nominated, rules=rules, phase=phase, namespace=namespace
    ),
    st.sampled_from([f"p{number}" for number in range(30)]),
    st.sampled_from((*NODES, None)),
    st.sampled_from((*OWNERS, None)),
    st.sampled_from((*NODES, None)),
    st.sampled_from((Rules(), Rules(), Rules(), APART)),
    st.sampled_from(("Running", "Pending", "Succeeded")),
    st.sampled_from(("shop", "bank")),
)
changes = st.one_of(pods, st.sampled_from([f"uid-p{number}" for number in range(30)]), st.sampled_from(NODES))


def answers(view: ClusterView) -> dict[str, object]:
    """Groups as sets of UIDs and records: the order within a group says nothing."""

    def group(found: tuple[Pod, ...]) -> dict[str, Pod]:
        return {pod.uid: pod for pod in found}

    return {
        "on": {name: group(view.pods_on(name)) for name in NODES},
        "of": {owner.uid: group(view.pods_of(owner.uid)) for owner in OWNERS},
        "nominated": group(view.nominated),
        "nominated to": {name: group(view.nominated_to(name)) for name in NODES},
        "seen by rules": group(view.seen_by_rules),
        "unread": view.unread_namespaces,
        "labels matter": view.namespace_labels_matter,
        "named": {pod.name: view.pod_named(pod.namespace, pod.name) for pod in view.pods.values()},
    }


@given(st.lists(pods, min_size=20, max_size=40), st.lists(st.lists(changes, max_size=3), max_size=8))
def test_indexes_that_are_taken_over_are_those_of_a_view_that_builds_its_own(
    first: list[Pod], rounds: list[list[Pod | str]]
) -> None:
    mirror = ClusterMirror((), lambda *_: None)
    mirror.upsert(Kind.NAMESPACES, Namespace("shop", "ns-1", "1"))
    version = 0
    batches: list[list[Pod | str]] = [[*first, *NODES], *rounds]
    for batch in batches:
        for change in batch:
            version += 1
            if isinstance(change, Pod):
                mirror.upsert(Kind.PODS, structs.replace(change, resource_version=str(version)))
            elif change not in NODES:
                mirror.remove(Kind.PODS, change)
            elif change in mirror.records(Kind.NODES):
                mirror.remove(Kind.NODES, change)
            else:
                mirror.upsert(Kind.NODES, make_node(change))
        view = mirror.freeze(float(version))
        assert answers(view) == answers(replace(view))
        assert view.pods == mirror.records(Kind.PODS)
