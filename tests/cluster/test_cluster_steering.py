"""What steering by policy relies on, on a real API server and kube-scheduler (the embedded server has no CEL)."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from loadtests.controlplane import Component, ControlPlane, ControlPlaneOptions, control_plane, install_crds
from matching.problem import Rules
from reactor.clock import SystemClock
from reactor.cluster.connection import open_connection
from reactor.cluster.decoding.decoder import Decoder, MalformedObject
from reactor.cluster.hints import HINTS_PATH, MOVE_LABEL, OBJECT_NAME, Hint, HintWriter
from reactor.cluster.kinds import Kind
from reactor.cluster.mirror import ClusterMirror
from reactor.cluster.steering_policy import CANARY_LABEL, CANARY_MOVE, SteeringPolicy
from tests.support.real_steering import (
    APPS,
    BINDINGS,
    REPLICA_SET_CONTROLLER,
    Json,
    SteeredCluster,
    as_user,
    install_policy,
    move_of,
    open_steered_cluster,
    owned_pod,
    policy_documents,
    remove_policy,
    stamp,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

TRIALS = 8
HOST = "kubernetes.io/hostname"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture
async def cluster(real_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[SteeredCluster]:
    async with open_steered_cluster(real_plane, tmp_path) as opened:
        yield opened


def preference(key: str, value: str, weight: int = 100, operator: str = "In") -> Json:
    expression = {"key": key, "operator": operator, "values": [value]}
    return {"weight": weight, "preference": {"matchExpressions": [expression]}}


def required(*alternatives: tuple[str, str]) -> Json:
    """ORed terms."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]} for key, value in alternatives]
    return {REQUIRED: {"nodeSelectorTerms": terms}}


def hint_terms(pod: Json) -> int:
    """How many preferred terms for a host name it has."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(PREFERRED, [])
    return sum(term["preference"]["matchExpressions"][0]["key"] == HOST for term in affinity)


def elsewhere(cluster: SteeredCluster, pod: Json) -> str:
    """A node that the pod is not on."""
    return next(node for node in reversed(cluster.nodes) if node != pod["spec"]["nodeName"])


SPECS: dict[str, Json] = {
    "nothing": {},
    "pod anti-affinity only": {"affinity": {"podAntiAffinity": {}}},
    "an empty affinity": {"affinity": {}},
    "required terms": {"affinity": {"nodeAffinity": required(("disk", "ssd"), ("zone", "a"))}},
    "preferred terms": {
        "affinity": {"nodeAffinity": {PREFERRED: [preference("disk", "ssd"), preference("x", "y", 9)]}}
    },
    "both": {"affinity": {"nodeAffinity": {**required(("disk", "ssd")), PREFERRED: [preference("disk", "ssd", 1)]}}},
    "a node selector": {"nodeSelector": {"disk": "ssd"}},
    "a node selector for its host": {"nodeSelector": {HOST: "mine"}},
}


async def test_what_is_added_to_a_pod_and_what_it_keeps(cluster: SteeredCluster) -> None:
    """ownerReferences are readable in CEL; existing terms and selectors stay as they are; labels may be absent."""
    hints = {"soft": Hint("m-soft", "planned", avoid="left"), "hard": Hint("m-hard", "planned", hard=True)}
    await cluster.write(hints)
    ours, not_back = preference(HOST, "planned"), preference(HOST, "left", 40, "NotIn")
    for name, spec in SPECS.items():
        soft = await cluster.dry_run(REPLICA_SET_CONTROLLER, "soft", spec)
        own = spec.get("affinity", {}).get("nodeAffinity", {})
        found = soft["spec"]["affinity"]["nodeAffinity"]
        kept = own.get(PREFERRED, [])
        assert soft["metadata"]["labels"] == {MOVE_LABEL: "m-soft"}, name
        assert found[PREFERRED] == [*kept, ours, not_back, *[ours] * len(kept)], name
        assert found.get(REQUIRED) == own.get(REQUIRED), name
        assert soft["spec"].get("nodeSelector") == spec.get("nodeSelector"), name

        labels = {"app": "web"}
        hard = await cluster.dry_run(REPLICA_SET_CONTROLLER, "hard", spec, labels=labels)
        selector = {HOST: "planned"} | spec.get("nodeSelector", {})
        assert hard["metadata"]["labels"] == {**labels, MOVE_LABEL: "m-hard"}, name
        assert hard["spec"]["nodeSelector"] == selector, name
        assert hard["spec"].get("affinity") == spec.get("affinity"), name


async def test_only_pods_that_a_controller_makes_for_a_hinted_owner_are_touched(cluster: SteeredCluster) -> None:
    hints = {"rs": Hint("m", "planned"), "sts": Hint("m", "planned", pod="db-0")}
    await cluster.write(hints)
    accounts = [REPLICA_SET_CONTROLLER, REPLICA_SET_CONTROLLER.replace("replica", "stateful")]
    cases = [
        *((account, "rs", {}, True) for account in (*accounts, "system:kube-controller-manager")),
        ("somebody", "rs", {}, False),
        (accounts[0], "other", {}, False),
        (accounts[1], "sts", {"name": "db-0"}, True),
        (accounts[1], "sts", {"name": "db-1"}, False),
    ]
    for user, owner, meta, stamped in cases:
        pod = await cluster.dry_run(user, owner, {}, **meta)
        assert (stamp(pod) == "m") is stamped, (user, owner, meta)
        assert bool(hint_terms(pod)) is stamped
    system = await cluster.dry_run(accounts[0], "rs", {}, "kube-system")
    assert stamp(system) is None


async def test_the_policy_is_harmless_without_its_parameters(cluster: SteeredCluster) -> None:
    spec = policy_documents()["MutatingAdmissionPolicy"]["spec"]
    binding = policy_documents()["MutatingAdmissionPolicyBinding"]["spec"]
    assert spec["failurePolicy"] == "Ignore"
    assert binding["paramRef"]["parameterNotFoundAction"] == "Allow"
    assert [rule["operations"] for rule in spec["matchConstraints"]["resourceRules"]] == [["CREATE"]]
    await cluster.api.delete(f"{HINTS_PATH}/{OBJECT_NAME}")
    pod = await cluster.dry_run(REPLICA_SET_CONTROLLER, "rs", {})
    assert stamp(pod) is None


async def landings(cluster: SteeredCluster, name: str, *, crowded: bool = False) -> Counter[str]:
    """Where replacements land: planned for a node without a pod of the app, or (`crowded`) for one that has another."""
    found: Counter[str] = Counter()
    for _ in range(TRIALS):
        pod, *others = await cluster.pods(name)
        source = pod["spec"]["nodeName"]
        used = {other["spec"]["nodeName"] for other in others}
        target = next(node for node in cluster.nodes if node != source and (node in used) is crowded)
        after = await cluster.move(pod, target)
        assert stamp(after) is not None
        found[{target: "planned", source: "source"}.get(after["spec"]["nodeName"], "elsewhere")] += 1
    print(f"\n{name}{' on a crowded node' if crowded else ''}: {dict(found)} of {TRIALS}")
    return found


ON_NODES = {"topologyKey": HOST}
SPREAD = {**ON_NODES, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
SOFT: dict[str, Json] = {
    "plain": {},
    "other-preferences": {"affinity": {"nodeAffinity": {PREFERRED: [preference("kubernetes.io/os", "none")] * 3}}},
    "soft-spread": {
        "topologySpreadConstraints": [{**SPREAD, "labelSelector": {"matchLabels": {"app": "soft-spread"}}}]
    },
    "soft-anti-affinity": {
        "affinity": {
            "podAntiAffinity": {
                PREFERRED: [
                    {
                        "weight": 100,
                        "podAffinityTerm": {
                            **ON_NODES,
                            "labelSelector": {"matchLabels": {"app": "soft-anti-affinity"}},
                        },
                    }
                ]
            }
        }
    },
}


@pytest.mark.parametrize("name", SOFT)
async def test_a_soft_hint_never_leads_back_where_another_node_has_room(cluster: SteeredCluster, name: str) -> None:
    """Where a soft rule speaks against the planned node, it lands elsewhere, and not where it was."""
    await cluster.deploy(name, 3, **SOFT[name])
    found = await landings(cluster, name)
    assert found["planned"] == TRIALS
    if name.startswith("soft"):
        assert (await landings(cluster, name, crowded=True))["source"] == 0


async def test_a_soft_hint_outweighs_what_the_pod_prefers(cluster: SteeredCluster) -> None:
    """As many terms of its own as it likes; a node that it may not use is not made possible."""
    liked = cluster.hostname(cluster.nodes[0])
    terms = [preference(HOST, liked)] * 3
    allowed = required(*((HOST, cluster.hostname(node)) for node in cluster.nodes[:3]))
    await cluster.deploy("picky", affinity={"nodeAffinity": {**allowed, PREFERRED: terms}})
    (pod,) = await cluster.pods("picky")
    assert pod["spec"]["nodeName"] == cluster.nodes[0]
    after = await cluster.move(pod, cluster.nodes[2])
    assert after["spec"]["nodeName"] == cluster.nodes[2]
    refused = await cluster.move(after, cluster.nodes[3])
    assert refused["spec"]["nodeName"] != cluster.nodes[3]


@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
async def test_from_a_to_b_to_c(cluster: SteeredCluster, hard: bool) -> None:
    """The owner's template has no hint in it, and a moved pod is planned by the template."""
    first, second, third = cluster.nodes[:3]
    await cluster.deploy("web")
    (pod,) = await cluster.pods("web")
    for target in (first, second, third):
        if pod["spec"]["nodeName"] == target:
            continue
        pod = await cluster.move(pod, target, hard=hard)
        assert pod["spec"]["nodeName"] == target
        planned = await planned_rules(cluster, pod)
        assert not planned.node_selector
        assert not planned.preferred.nodes
    assert hard is (HOST in pod["spec"].get("nodeSelector", {}))


async def planned_rules(cluster: SteeredCluster, pod: Json) -> Rules:
    mirror, decoder = ClusterMirror((), lambda *_: None), Decoder()
    for kind in (Kind.PODS, Kind.REPLICA_SETS):
        for item in (await cluster.api.get(kind.path(cluster.api.namespace))).body["items"]:
            record = decoder.decode(kind, msgspec.json.encode(item))
            assert not isinstance(record, MalformedObject)
            mirror.upsert(kind, record)
    return mirror.freeze(0.0).pods[pod["metadata"]["uid"]].rules


async def test_a_hint_for_a_stateful_set_is_for_the_pod_of_that_name(cluster: SteeredCluster) -> None:
    await cluster.deploy("db", 2, kind="StatefulSet")
    pods = {pod["metadata"]["name"]: pod for pod in await cluster.pods("db")}
    target = elsewhere(cluster, pods["db-0"])
    await cluster.steering.hint(move_of(pods["db-0"], target))
    other = await cluster.replaced(pods["db-1"])
    assert stamp(other) is None
    after = await cluster.replaced(pods["db-0"])
    assert (after["metadata"]["name"], after["spec"]["nodeName"]) == ("db-0", target)
    assert after["metadata"]["uid"] != pods["db-0"]["metadata"]["uid"]


async def test_a_pod_with_a_stale_hard_hint_recovers_when_the_hint_is_gone(cluster: SteeredCluster) -> None:
    await cluster.deploy("web")
    (pod,) = await cluster.pods("web")
    stale = move_of(pod, "a-node-that-is-gone")
    await cluster.steering.hint(stale, hard=True)
    name = pod["metadata"]["name"]
    await cluster.api.delete(cluster.api.here("pods", name), {"gracePeriodSeconds": 0})
    async with asyncio.timeout(20):
        while not (stuck := [each for each in await cluster.pods("web") if stamp(each) == stale.id]):
            await asyncio.sleep(0.02)
    await cluster.steering.withdraw_others([])
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": stuck[0]["metadata"]["name"]}}
    answer = await cluster.api.post(f"{cluster.api.here('pods', stuck[0]['metadata']['name'])}/eviction", eviction)
    assert answer.status == 201, answer.body
    (after,) = await cluster.placed("web", 1)
    assert stamp(after) is None


async def test_a_hard_pin_cannot_be_taken_off(cluster: SteeredCluster) -> None:
    await cluster.deploy("web")
    (pod,) = await cluster.pods("web")
    after = await cluster.move(pod, elsewhere(cluster, pod), hard=True)
    unpinned = {"spec": {"nodeSelector": {HOST: None}}}
    answer = await cluster.api.patch(cluster.api.here("pods", after["metadata"]["name"]), unpinned)
    assert answer.status == 422


async def test_the_canary_shows_that_it_works_and_leaves_nothing(cluster: SteeredCluster) -> None:
    found = await cluster.policy.discover()
    assert (found.problem, bool(found.version)) == ("", True)
    left = {"metadata": {"name": "left", "labels": {CANARY_LABEL: "killed"}}}
    template = {"metadata": {"labels": {CANARY_LABEL: "killed"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {CANARY_LABEL: "killed"}}, "template": template}
    await cluster.api.post(cluster.api.here("replicasets", group=APPS), {**left, "spec": spec})
    await cluster.hints.change(lambda _: {"left": Hint(f"{CANARY_MOVE}killed", "none")})
    assert await cluster.policy.try_canary() == ""
    assert await cluster.hints.read() == {}
    await cluster.api.eventually(
        lambda: cluster.api.get(cluster.api.here("replicasets", group=APPS)), lambda found: not found.body["items"]
    )
    await cluster.api.eventually(
        lambda: cluster.api.get(cluster.api.here("pods")), lambda found: not found.body["items"]
    )


async def test_a_canary_whose_pod_is_refused_says_why(cluster: SteeredCluster) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    await cluster.api.post(cluster.api.here("resourcequotas"), quota)
    await cluster.api.eventually(
        lambda: cluster.api.get(cluster.api.here("resourcequotas", "none")),
        lambda found: "hard" in found.body.get("status", {}),
    )
    problem = await cluster.policy.try_canary()
    assert "exceeded quota: none" in problem
    assert await cluster.hints.read() == {}


async def test_parameters_are_fresh_after_the_binding_was_made_again(cluster: SteeredCluster) -> None:
    """With a ConfigMap they were stale for ever: kubernetes/kubernetes#130887."""
    await cluster.deploy("web")
    (pod,) = await cluster.pods("web")
    one, two, *_ = [node for node in cluster.nodes if node != pod["spec"]["nodeName"]]
    await cluster.steering.hint(move_of(pod, one))
    await cluster.api.delete(f"{BINDINGS}/rematch-hints")
    problem = (await cluster.policy.discover()).problem
    assert "MutatingAdmissionPolicyBinding rematch-hints is missing" in problem
    assert "kubectl apply -f" in problem
    await cluster.until_in_force(works=False)
    await cluster.steering.withdraw_others([])
    await install_policy(cluster.api)
    await cluster.until_in_force()
    assert (await cluster.move(pod, two))["spec"]["nodeName"] == two


async def test_an_api_server_with_the_plugin_switched_off(tmp_path: Path) -> None:
    flags = {Component.API_SERVER: ("--disable-admission-plugins=MutatingAdmissionPolicy",)}
    async with control_plane(ControlPlaneOptions(tmp_path / "plane", flags=flags)) as plane:
        api = plane.client()
        await install_crds(api)
        await api.close()
        kubeconfig = plane.write_kubeconfig(tmp_path / "admin", token=plane.admin_token)
        connection = await open_connection(str(kubeconfig))
        clock = SystemClock()
        policy = SteeringPolicy(connection, HintWriter(connection, clock), clock, "default")
        async with as_user(plane, "default") as admin:
            assert "MutatingAdmissionPolicy rematch-hints is missing" in (await policy.discover()).problem
            await install_policy(admin)
            assert (await policy.discover()).problem == ""
            problem = await policy.try_canary()
        await connection.close()
    assert "came without the label" in problem
    assert "--disable-admission-plugins" in problem


async def test_the_cost_of_a_pod_with_no_hint_and_with_a_thousand(
    real_plane: ControlPlane, cluster: SteeredCluster
) -> None:
    """Milliseconds per create; the bound is generous: this machine is shared, and the median of the others was 4."""
    figures = {}
    figures["0 hints"] = await _create_milliseconds(real_plane, cluster)
    await cluster.write({f"uid-{at}": Hint(f"m-{at}", "planned") for at in range(1000)})
    figures["1,000 hints"] = await _create_milliseconds(real_plane, cluster)
    figures["1,000 hints, hinted"] = await _create_milliseconds(real_plane, cluster, "uid-7")
    await remove_policy(cluster.api)
    await asyncio.sleep(1.0)
    figures["no policy"] = await _create_milliseconds(real_plane, cluster)
    print("\nms per pod create, p50: " + ", ".join(f"{name} {value:.2f}" for name, value in figures.items()))
    assert figures["1,000 hints"] < figures["no policy"] + 200


async def _create_milliseconds(plane: ControlPlane, cluster: SteeredCluster, owner: str = "other") -> float:
    body = owned_pod(owner, {})
    taken = []
    async with as_user(plane, cluster.api.namespace, REPLICA_SET_CONTROLLER) as api:
        for _ in range(60):
            began = time.perf_counter()
            answer = await api.call("POST", api.here("pods"), body, dryRun="All")
            taken.append(time.perf_counter() - began)
            assert answer.status == 201
    return 1000 * statistics.median(taken)
