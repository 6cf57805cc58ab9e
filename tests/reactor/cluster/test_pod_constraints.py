"""What the cluster adds to a pod's own rules, and what it leaves unsupported."""

from __future__ import annotations

from typing import Any

import pytest

from matching.problem import PodTerm, Requirement, Rules, Selector, Term
from reactor.cluster.kinds import Kind
from reactor.cluster.pod_constraints import namespace_labels, rules_of, unsupported_constraints
from reactor.cluster.records import Namespace, Owner, PersistentVolume, PersistentVolumeClaim, Pod
from reactor.cluster.view import ClusterView

HERE = (Term((Requirement("host", "In", ("n1",)),)),)


def pod(name: str = "db", namespace: str = "shop", **more: Any) -> Pod:
    return Pod(name, namespace, name, "1", {}, {}, 0.0, owner=Owner("ReplicaSet", "db", "rs"), **more)


def view(*pods: Pod, namespaces: tuple[str, ...] = ("shop",), **more: Any) -> ClusterView:
    known = {name: Namespace(name, name, "1", {"team": name}) for name in namespaces}
    return ClusterView(0.0, pods={each.uid: each for each in pods}, namespaces=known, **more)


def claim(**more: Any) -> PersistentVolumeClaim:
    fields = {"name": "data", "volume": "pv", "bind_completed": True, **more}
    return PersistentVolumeClaim("c", "shop", resource_version="1", **fields)


def test_the_rules_of_bound_volumes_are_added() -> None:
    using = pod(pvcs=("data",))
    volume = PersistentVolume("pv", "v", "1", HERE, zones=(("zone", ("a",)),))
    cluster = view(using, pvcs=(claim(),), pvs={"pv": volume})
    assert rules_of(using, cluster) == Rules(volumes=(HERE,), volume_zones=(("zone", ("a",)),))
    assert unsupported_constraints(using, cluster) == ()


def test_claims_are_unsupported_where_the_limits_of_nodes_may_not_be_read() -> None:
    using, plain = pod(pvcs=("data",)), pod("web")
    cluster = view(using, plain, pvcs=(claim(),), pvs={"pv": PersistentVolume("pv", "v", "1")}, unread={Kind.CSI_NODES})
    (problem,) = unsupported_constraints(using, cluster)
    assert "csinodes may not be read" in problem
    assert unsupported_constraints(plain, cluster) == ()


def test_pods_without_claims_keep_the_shared_rules() -> None:
    plain = pod()
    assert rules_of(plain, view(plain)) is plain.rules


@pytest.mark.parametrize(
    ("found", "volumes", "why"),
    [
        ((), {}, "it is not there"),
        ((claim(volume=""),), {}, "not bound yet; WaitForFirstConsumer is not supported"),
        ((claim(bind_completed=False),), {"pv": PersistentVolume("pv", "v", "1")}, "not bound completely to pv yet"),
        ((claim(lost=True),), {"pv": PersistentVolume("pv", "v", "1")}, "lost: its volume pv is gone"),
        ((claim(),), {}, "its volume pv is not there"),
        ((claim(deleting=True),), {"pv": PersistentVolume("pv", "v", "1")}, "it is being deleted"),
    ],
)
def test_pvcs_that_cannot_be_used(
    found: tuple[PersistentVolumeClaim, ...], volumes: dict[str, PersistentVolume], why: str
) -> None:
    using = pod(pvcs=("data",), unsupported=("resourceClaims",))
    cluster = view(using, pvcs=found, pvs=volumes)
    assert unsupported_constraints(using, cluster) == ("resourceClaims", f"claim shop/data ({why})")


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ((), "not created yet, for an ephemeral volume"),
        ((claim(name="db-tmp"),), "not made for this pod, although an ephemeral volume of the pod has its name"),
        ((claim(name="db-tmp", controller="db", volume=""),), "not bound yet; WaitForFirstConsumer is not supported"),
        ((claim(name="db-tmp", controller="db"),), ""),
    ],
)
def test_the_claim_of_an_ephemeral_volume_has_to_be_the_pods_own(
    found: tuple[PersistentVolumeClaim, ...], why: str
) -> None:
    using = pod(pvcs=("db-tmp",), ephemeral_pvcs=("db-tmp",))
    cluster = view(using, pvcs=found, pvs={"pv": PersistentVolume("pv", "v", "1")})
    assert unsupported_constraints(using, cluster) == ((f"claim shop/db-tmp ({why})",) if why else ())


def test_zone_labels_of_an_ephemeral_volume_count_like_those_of_others() -> None:
    using = pod(pvcs=("db-tmp",), ephemeral_pvcs=("db-tmp",))
    volume = PersistentVolume("pv", "v", "1", zones=(("zone", ("a",)),))
    cluster = view(using, pvcs=(claim(name="db-tmp", controller="db"),), pvs={"pv": volume})
    assert rules_of(using, cluster) == Rules(volume_zones=(("zone", ("a",)),))


def test_an_exclusive_claim_is_fine_for_its_only_user() -> None:
    one, other = pod("db-1", pvcs=("data",)), pod("db-2", pvcs=("data",))
    volumes = {"pv": PersistentVolume("pv", "v", "1")}
    alone = view(one, pvcs=(claim(exclusive=True),), pvs=volumes)
    both = view(one, other, pvcs=(claim(exclusive=True),), pvs=volumes)
    assert unsupported_constraints(one, alone) == ()
    assert unsupported_constraints(one, both) == ("claim shop/data (for one pod at a time, and another one uses it)",)


def test_selectors_of_namespaces_need_their_labels() -> None:
    team = Selector((Requirement("team", "In", ("x",)),))
    named = Selector((Requirement("kubernetes.io/metadata.name", "In", ("bank",)),))
    selecting = pod(rules=Rules(pod_affinity=(PodTerm("zone", Selector(), (), team),)))
    modest = pod("modest", rules=Rules(pod_anti_affinity=(PodTerm("zone", Selector(), (), named),)))
    other = pod("other", namespace="bank")
    cluster = view(selecting, modest, other)
    assert unsupported_constraints(selecting, cluster) == ("namespaceSelector (namespace bank was not read)",)
    assert unsupported_constraints(modest, cluster) == ()
    assert unsupported_constraints(other, cluster) == ("other pods' namespaceSelector (namespace bank was not read)",)
    known = view(selecting, modest, other, namespaces=("shop", "bank"))
    assert not any(unsupported_constraints(each, known) for each in (selecting, modest, other))
    assert namespace_labels(cluster) == {"shop": {"team": "shop"}, "bank": {"kubernetes.io/metadata.name": "bank"}}
