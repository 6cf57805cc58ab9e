"""Who is ordinary at a glance is never one that a check would have fixed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.problem import PodTerm, Rules
from reactor.cluster.records import Namespace, Pod
from reactor.decision.eligibility import Ordinary
from reactor.decision.managed import Management
from reactor.decision.protection import DO_NOT_MOVE
from reactor.decision.reasons import Reason
from reactor.planning.problems import why_fixed
from reactor.settings.model import Settings
from reactor.state.moves import Lineage, Ongoing, Rest
from reactor.state.snapshot import Needs, Snapshot
from tests.support.clock import NOW
from tests.support.cluster import GIB, make_node, make_owner, make_pdb, make_pod, make_settings, make_snapshot

NAMESPACES = {name: Namespace(name, f"uid-{name}", "", {}) for name in ("shop", "kube-system")}
MEASURED = {"web-1": (0.2, GIB)}

ODD_PODS: list[dict[str, Any]] = [
    {"namespace": "kube-system"},
    {"deleting": NOW},
    {"phase": "Succeeded"},
    {"mirror": True},
    {"priority_class": "system-node-critical"},
    {"priority": 2_000_000_000},
    {"owner": None},
    {"owner": make_owner("ds", "DaemonSet")},
    {"owner": make_owner("job", "Job")},
    {"owner": make_owner("n1", "Node")},
    {"annotations": {DO_NOT_MOVE: "true"}},
    {"local_data": ("emptyDir cache",)},
    {"pvcs": ("data",)},
    {"unsupported": ("resourceClaims",)},
    {"scheduler_name": "default-scheduler"},
]
ODD_SETTINGS: list[dict[str, Any]] = [
    {"managed": {"namespaces": ["other"]}},
    {"managed": {"labelSelector": "app=other"}},
    {"managed": {"schedulerName": "other"}},
]
ODD_SURROUNDINGS: list[dict[str, Any]] = [
    {"usage": {}},
    {"age": 3600.0},
    {"workloads": ()},
    {"pdbs": (make_pdb("none", 0),)},
    {"ongoing": Ongoing(lineage={"uid-web-1": Lineage(NOW - 1, 1)})},
    {"ongoing": Ongoing(relieved={"n1": NOW - 1})},
    {"ongoing": Ongoing(resting={"uid-web-1": Rest(NOW + 60, Reason.PDB, "refused")})},
]


def snapshot_of(pod: Pod, **surroundings: Any) -> Snapshot:
    return make_snapshot([pod], [make_node()], **({"namespaces": NAMESPACES, "usage": MEASURED} | surroundings))


def is_ordinary(snapshot: Snapshot, settings: Settings) -> bool:
    pods = list(snapshot.cluster.pods.values())
    return Ordinary.of(snapshot, settings, Management.of(settings)).covers(pods) == [True]


def is_fixed(snapshot: Snapshot, settings: Settings) -> bool:
    (pod,) = snapshot.cluster.pods.values()
    return bool(why_fixed(pod, snapshot, settings, Management.of(settings)))


def test_a_pod_like_most_is_ordinary() -> None:
    assert is_ordinary(snapshot_of(make_pod()), make_settings())
    assert is_ordinary(snapshot_of(make_pod(), usage={}, needs=Needs.REQUESTS), make_settings())
    assert is_ordinary(snapshot_of(make_pod(), pdbs=(make_pdb("some", 1),)), make_settings())


@pytest.mark.parametrize("odd", ODD_PODS, ids=str)
def test_whoever_is_fixed_is_not_ordinary(odd: dict[str, Any]) -> None:
    snapshot = snapshot_of(make_pod(**odd))

    assert is_fixed(snapshot, make_settings())
    assert not is_ordinary(snapshot, make_settings())


@pytest.mark.parametrize("odd", ODD_SETTINGS, ids=str)
def test_nobody_is_ordinary_whom_the_settings_leave_out(odd: dict[str, Any]) -> None:
    assert is_fixed(snapshot_of(make_pod()), make_settings(**odd))
    assert not is_ordinary(snapshot_of(make_pod()), make_settings(**odd))


@pytest.mark.parametrize("odd", ODD_SURROUNDINGS, ids=lambda odd: next(iter(odd)))
def test_nobody_is_ordinary_whom_the_surroundings_fix(odd: dict[str, Any]) -> None:
    assert is_fixed(snapshot_of(make_pod(), **odd), make_settings())
    assert not is_ordinary(snapshot_of(make_pod(), **odd), make_settings())


def test_nobody_is_ordinary_while_a_namespace_was_not_read() -> None:
    near = PodTerm("kubernetes.io/hostname", namespace_selector=None)
    snapshot = snapshot_of(make_pod(rules=Rules(pod_affinity=(near,))), namespaces={})

    assert not is_ordinary(snapshot, make_settings())


@given(
    st.lists(st.sampled_from(ODD_PODS), max_size=2),
    st.sampled_from([{}, *ODD_SETTINGS]),
    st.lists(st.sampled_from(ODD_SURROUNDINGS), max_size=2),
)
def test_ordinary_never_contradicts_the_checks(
    pods: list[dict[str, Any]], settings: dict[str, Any], surroundings: list[dict[str, Any]]
) -> None:
    pod = make_pod(**{key: value for odd in pods for key, value in odd.items()})
    snapshot = snapshot_of(pod, **{key: value for odd in surroundings for key, value in odd.items()})

    assert is_ordinary(snapshot, make_settings(**settings)) <= (not is_fixed(snapshot, make_settings(**settings)))
