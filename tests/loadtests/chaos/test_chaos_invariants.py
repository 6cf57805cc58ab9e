"""The judge: planted violations are found, and what is allowed is not one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from loadtests.chaos.audit import ACCOUNT, Write, parse
from loadtests.chaos.controllers import Incarnation
from loadtests.chaos.history import PodHistory
from loadtests.chaos.invariants import Evidence, Stretch, check_all
from loadtests.chaos.requests import Step
from loadtests.chaos.workloads import OURS, Owner, Workload
from loadtests.chaos.world import Wish

WEB = Workload("web", Owner.DEPLOYMENT, 3, min_available=2)
T = 1000.0


def pod(name: str, ready: bool = True, **fields: Any) -> PodHistory:
    made = PodHistory(f"uid-{name}", "chaos", name, "web", OURS, seen=T - 60, bound=T - 59)
    made.ready.append((T - 58, ready))
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def write(step: Step, name: str, at: float = T, **fields: Any) -> Write:
    usual: dict[str, Any] = {
        "began": at,
        "ended": at + 0.01,
        "user": ACCOUNT,
        "credential": "a",
        "verb": "create" if step in (Step.EVICT, Step.BIND) else "patch",
        "step": step,
        "namespace": "chaos",
        "name": name,
        "code": 201,
        "resource": "pods",
    }
    return Write(**(usual | fields))


def eviction(name: str, at: float = T, **fields: Any) -> Write:
    body = {"deleteOptions": {"preconditions": {"uid": f"uid-{name}"}}}
    return write(Step.EVICT, name, at, **({"request": body} | fields))


def lease(holder: str, at: float) -> Write:
    body = {"spec": {"holderIdentity": holder}}
    return write(Step.LEASE, "rematch", at, verb="update", credential=holder, response=body, resource="leases")


def scale(replicas: int, at: float = T, **fields: Any) -> Write:
    body = {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": replicas}}
    return write(Step.OWNER, "web", at, request=body, response=body, resource="deployments", **fields)


def journaled(name: str, move: str = "", plan: str = "p1", at: float = T - 1, **fields: Any) -> Write:
    document = {"plan_id": plan, "pod": {"uid": f"uid-{name}"}, "workload": "Deployment/chaos/web", **fields}
    body = {"metadata": {"name": move or f"move-{name}"}, "spec": {"move": document}}
    return write(Step.JOURNAL, move or f"move-{name}", at, verb="create", response=body, resource="moves")


ANNOUNCED = tuple(journaled(f"web-{number}", plan=f"plan-{number}") for number in range(1, 5))


def found(*writes: Write, pods: tuple[PodHistory, ...] = (), **fields: Any) -> list[str]:
    evidence = Evidence(
        (*ANNOUNCED, *writes), pods, {"web": WEB}, [Wish(0.0, "web", 3)], began=T - 60, ended=T + 60, **fields
    )
    return [violation.invariant for violation in check_all(evidence)]


THREE = tuple(pod(f"web-{number}") for number in (1, 2, 3))


def test_an_ordinary_eviction_is_no_violation() -> None:
    assert found(eviction("web-1"), pods=THREE) == []


def test_two_evictions_at_once_leave_too_few() -> None:
    assert found(eviction("web-1"), eviction("web-2", T + 0.5), pods=THREE) == ["ready replicas"]


def test_a_repeated_eviction_of_the_same_pod_is_one() -> None:
    assert found(eviction("web-1"), eviction("web-1", T + 0.5), pods=THREE) == []


def test_a_refused_eviction_does_nothing() -> None:
    assert found(eviction("web-1"), eviction("web-2", code=429), pods=THREE) == []


def test_a_pod_that_is_not_ready_takes_nothing_away() -> None:
    pods = (pod("web-1", ready=False), pod("web-2", ready=False), pod("web-3"))
    assert found(eviction("web-1"), eviction("web-2", T + 0.5), pods=pods) == []


def test_news_that_were_a_moment_old_excuse() -> None:
    going, staying = pod("web-2"), THREE[:1]
    going.ready.append((T - 0.5, False))
    assert found(eviction("web-3"), pods=(*staying, going, pod("web-3"))) == []
    going.ready[-1] = (T - 5.0, False)
    assert found(eviction("web-3"), pods=(*staying, going, pod("web-3"))) == ["ready replicas"]


@pytest.mark.parametrize(
    "bad",
    [
        eviction("web-1", request={}),
        write(Step.POD, "web-1", request={"metadata": {"labels": {}}}),
        write(Step.POD, "web-1", request=[{"op": "remove", "path": "/metadata/labels/a"}]),
    ],
)
def test_a_write_without_precondition_is_found(bad: Write) -> None:
    assert "precondition" in found(bad)


def test_a_json_patch_that_tests_first_has_one() -> None:
    tested = [{"op": "test", "path": "/metadata/uid", "value": "1"}, {"op": "remove", "path": "/metadata/labels/a"}]
    assert found(write(Step.POD, "web-1", request=tested)) == []


def test_scaling_back_below_the_pdb_is_found() -> None:
    pods = (pod("web-1"), pod("web-2"), pod("web-3", ready=True), pod("web-4", ready=True))
    assert found(scale(3), pods=pods) == []
    assert found(scale(1), pods=pods) == ["PDB or ready replicas"]


def test_a_write_that_no_entry_announced_is_found() -> None:
    five = (*THREE, pod("web-5"))
    assert found(eviction("web-5"), pods=five) == ["not announced"]
    assert found(journaled("web-5"), eviction("web-5"), pods=five) == []
    assert found(eviction("web-5"), journaled("web-5", at=T + 1), pods=five) == ["not announced"]
    assert found(eviction("web-5"), pods=five, earlier=[journaled("web-5", at=T - 90)]) == []
    body = {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 4}}
    other = write(Step.OWNER, "db", request=body, response=body, resource="deployments")
    assert found(other) == ["not announced"]


def test_a_pod_that_is_moved_twice_for_one_plan_is_found() -> None:
    again = journaled("web-8", "second", replacement="uid-web-9")
    assert found(journaled("web-8", "first"), again) == ["moved twice"]
    assert found(again, journaled("web-9", "third")) == ["moved twice"]
    assert found(again, journaled("web-9", "third", plan="p2")) == []


def test_a_deleted_pod_is_found_unless_its_replica_set_had_let_it_go() -> None:
    held = {"metadata": {"labels": {"app": "web", "pod-template-hash": "1"}}}
    released = {"metadata": {"labels": {"rematch.io/move": "m1"}}}
    asked = {"preconditions": {"uid": "uid-web-1"}}
    bad = write(Step.POD_DELETE, "web-1", verb="delete", request=asked, response=held)
    assert found(bad) == ["evicted, not deleted"]
    assert found(write(Step.POD_DELETE, "web-1", verb="delete", request=asked, response=released)) == []


def test_a_past_leaders_step_beside_its_successors_is_found() -> None:
    taken = lease("a", T - 10), lease("b", T)
    late = scale(4, T + 1, credential="a")
    assert found(*taken, late) == []
    assert found(*taken, late, scale(4, T + 2, credential="b")) == ["past leader"]
    assert found(*taken, scale(4, T + 0.5, credential="b"), late) == ["past leader"]
    assert found(*taken, scale(4, T - 1, credential="a"), scale(3, T + 1, credential="b")) == []


@pytest.mark.parametrize(("step", "name"), [(Step.POD, "web-1"), (Step.HINT, "rematch")])
def test_a_past_leaders_patch_is_found_after_its_successors_own(step: Step, name: str) -> None:
    taken = lease("a", T - 10), lease("b", T)
    body = {"metadata": {"uid": f"uid-{name}", "resourceVersion": "7"}}
    late = write(step, name, T + 1, credential="a", request=body)
    assert found(*taken, write(step, name, T + 0.5, credential="b", request=body), late) == ["past leader"]
    assert found(*taken, late, write(step, name, T + 2, credential="b", request=body)) == []


def test_a_pod_of_ours_that_waits_too_long_is_found() -> None:
    waiting = pod("web-1", ready=False, seen=T, bound=T + 20)
    assert found(pods=(waiting,)) == ["unbound"]
    assert found(pods=(waiting,), disturbances=[Stretch(T, T + 15)]) == []
    assert found(pods=(waiting,), disturbances=[Stretch(T, T + 1, away=False)] * 2) == []
    never = pod("web-1", ready=False, seen=T, bound=None)
    assert found(pods=(never,)) == ["unbound"]
    assert found(pods=(pod("web-1", ready=False, seen=T, bound=None, scheduler="default-scheduler"),)) == []


def test_a_controller_that_ends_by_itself_is_found() -> None:
    ended = Incarnation("a", "JTI=1", 7, since=T - 30, until=T)
    killed = Incarnation("a", "JTI=1", 7, since=T - 30, until=T, killed=True)
    assert found(incarnations=[ended, killed]) == ["controller ended"]


def test_a_write_that_we_have_no_right_to_is_found() -> None:
    assert found(eviction("web-1", code=403)) == ["rights"]


def test_the_log_of_a_real_api_server_is_read() -> None:
    line = {
        "kind": "Event",
        "stage": "ResponseComplete",
        "verb": "create",
        "requestURI": "/api/v1/namespaces/chaos/pods/web-1/eviction",
        "user": {"username": ACCOUNT, "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"]}},
        "objectRef": {"resource": "pods", "namespace": "chaos", "name": "web-1", "subresource": "eviction"},
        "responseStatus": {"metadata": {}, "code": 201},
        "requestObject": {"deleteOptions": {"preconditions": {"uid": "uid-web-1"}}},
        "requestReceivedTimestamp": "2026-11-17T18:00:00.000000Z",
        "stageTimestamp": "2026-11-17T18:00:00.250000Z",
    }
    (read,) = parse(msgspec.json.encode(line) + b"\n")
    assert (read.step, read.name, read.credential, read.accepted) == (Step.EVICT, "web-1", "JTI=1", True)
    assert read.ended - read.began == pytest.approx(0.25)
