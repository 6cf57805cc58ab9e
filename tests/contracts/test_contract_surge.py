"""Whole moves by surge, with the real ReplicaSet and Deployment controllers and with the embedded ones.

The test is the scheduler and the kubelet: it binds new pods, lets them become Ready and ends those that are deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from msgspec import structs

from loadtests.embedded.plain_client import STRATEGIC, PlainClient
from matching.problem import Strategy
from reactor.clock import SystemClock
from reactor.cluster.kinds import Kind
from reactor.cluster.reads import ClusterReader
from reactor.cluster.records import Node, Pod, Service, Workload
from reactor.cluster.surge_writes import DELETION_COST, SURGE
from reactor.cluster.writes import ClusterWriter
from reactor.decision.strategies import Strategies
from reactor.execution.executor import Executor
from reactor.execution.journal import MemoryJournal
from reactor.execution.move_calls import make_call
from reactor.execution.move_states import Seen
from reactor.execution.steering import NoSteering
from reactor.settings.model import Settings
from reactor.state.moves import Call, Move, MoveState
from reactor.state.snapshot import Snapshot
from tests.contracts.conftest import Connect
from tests.support.cluster import make_eligibility, make_settings, make_snapshot, make_view
from tests.support.lossy import Loss, LossyConnection
from tests.support.moves import make_move, make_plan, plan_move

APPS = "apis/apps/v1"
SURGES = [Strategy.SCALE_SURGE, Strategy.RELEASE_SURGE]


def surging(deadline: str, drain: str = "0s") -> Settings:
    execution = {"strategies": [*SURGES, "evict"], "drainDelay": drain, "readyDeadline": deadline}
    managed = {"anySchedulerNamespaces": ["*"]}
    return make_settings(mode="act", managed=managed, placement={"steering": "none"}, execution=execution)


@dataclass
class Lab:
    """`place` is the node of the next pods; None leaves them pending. `ready` are nodes on which pods become Ready."""

    api: PlainClient
    connection: LossyConnection
    nodes: tuple[str, str]
    settings: Settings
    place: str | None = None
    ready: set[str] = field(default_factory=set)
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    changed: list[Move] = field(default_factory=list)
    least_ready: int = 10**6

    def __post_init__(self) -> None:
        self.place = self.nodes[0]
        self.ready = set(self.nodes)
        self.reader = ClusterReader(self.connection)
        self.restart()

    def restart(self) -> None:
        """As a new process: nothing is known but the journal."""
        self.executor = Executor(ClusterWriter(self.connection, SystemClock()), journal=self.journal)

    async def pods(self) -> list[Pod]:
        listed = (await self.reader.list_all(Kind.PODS)).records
        return [pod for pod in listed if isinstance(pod, Pod) and pod.namespace == self.api.namespace]

    async def snapshot(self) -> Snapshot:
        nodes = (await self.reader.list_all(Kind.NODES)).records
        kinds = (Kind.REPLICA_SETS, Kind.DEPLOYMENTS)
        workloads = [each for kind in kinds for each in (await self.reader.list_all(kind)).records]
        services = (await self.reader.list_all(Kind.SERVICES)).records
        return make_snapshot(
            await self.pods(),
            [node for node in nodes if isinstance(node, Node)],
            now=SystemClock().now(),
            workloads=[each for each in workloads if isinstance(each, Workload)],
            services=tuple(each for each in services if isinstance(each, Service)),
            moves=self.executor.active_moves(),
        )

    async def kubelet(self) -> None:
        pods = await self.pods()
        self.least_ready = min(self.least_ready, sum(pod.ready and pod.deleting is None for pod in pods))
        for pod in pods:
            path = self.api.here("pods", pod.name)
            if pod.deleting is not None:
                await self.api.delete(path, {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}})
            elif pod.node is None and self.place is not None:
                binding = {"metadata": {"name": pod.name}, "target": {"kind": "Node", "name": self.place}}
                await self.api.post(f"{path}/binding", binding)
            elif pod.node in self.ready and not pod.ready:
                condition = {"type": "Ready", "status": "True"}
                status = {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
                patch = {"status": {**status, "conditions": [condition]}}
                await self.api.patch(f"{path}/status", patch, STRATEGIC)

    async def deploy(self, replicas: int, *, pre_stop: bool = True, **spec: Any) -> None:
        """With a preStop hook a scale surge is chosen, although a Service selects the pods."""
        lifecycle = {"lifecycle": {"preStop": {"exec": {"command": ["true"]}}}} if pre_stop else {}
        containers = [{"name": "c", "image": "lab/none:1", **lifecycle}]
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": containers, "schedulerName": "nobody", "terminationGracePeriodSeconds": 1},
        }
        body = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
        created = await self.api.post(
            self.api.here("deployments", group=APPS), {"metadata": {"name": "web"}, "spec": body}
        )
        assert created.status == 201, created.body
        service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
        assert (await self.api.post(self.api.here("services"), service)).status == 201
        await self.until(lambda pods: sum(pod.ready for pod in pods) == replicas)
        await self.api.eventually(
            lambda: self.api.get(self.api.here("deployments", "web", group=APPS)),
            lambda found: found.body["status"].get("availableReplicas") == replicas,
        )
        self.least_ready = replicas

    async def until(self, holds: Callable[[list[Pod]], bool]) -> None:
        async with asyncio.timeout(30):
            while not holds(await self.pods()):
                await self.kubelet()
                await asyncio.sleep(0.05)

    async def begin(self, strategy: Strategy) -> Move:
        """The first pod starts to move from the first node to the second."""
        snapshot = await self.snapshot()
        pod = min((pod for pod in snapshot.cluster.pods.values()), key=lambda each: each.name)
        plan = make_plan(replace(plan_move(pod, self.nodes[1]), strategy=strategy))
        (move,) = self.executor.adopt(plan, "plan", snapshot)
        self.place = self.nodes[1]
        snapshot = await self.snapshot()
        await self.executor.start(make_eligibility(snapshot, self.settings), self.changed.append)
        return move

    async def cycle(self, *, stopping: bool = False) -> None:
        snapshot = await self.snapshot()
        self.changed += self.executor.follow(snapshot.cluster, snapshot.at, self.settings)
        await self.executor.proceed(
            snapshot.cluster, snapshot.at, self.settings, self.changed.append, stopping=stopping
        )
        await self.executor.forget_finished()

    async def finish(self, **how: bool) -> Move:
        async with asyncio.timeout(60):
            while self.executor.busy:
                await self.kubelet()
                await self.cycle(**how)
                await asyncio.sleep(0.05)
        await self.until(lambda pods: all(pod.deleting is None and pod.ready for pod in pods))
        return self.changed[-1]

    async def replicas(self) -> int:
        found = await self.api.get(self.api.here("deployments", "web", group=APPS))
        return int(found.body["spec"]["replicas"])

    async def deployment(self) -> Workload:
        found = (await self.snapshot()).cluster.workloads.values()
        return next(each for each in found if (each.kind, each.namespace) == ("Deployment", self.api.namespace))

    async def is_not_marked(self) -> None:
        assert (await self.deployment()).surge == ""
        assert not any(SURGE in pod.annotations for pod in await self.pods())

    async def is_clean(self, replicas: int) -> None:
        """Nothing of ours is left, and the owner has what it wants."""
        pods = await self.pods()
        assert await self.replicas() == len(pods) == replicas
        assert all(pod.owner is not None and pod.ready for pod in pods)
        assert not any(DELETION_COST in pod.annotations for pod in pods)
        assert self.journal.moves == {}


@pytest.fixture
async def lab(api: PlainClient, connect: Connect, node: str) -> AsyncIterator[Lab]:
    other = f"{node}-b"
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    assert (await api.post("/api/v1/nodes", {"metadata": {"name": other}, "status": status})).status == 201
    yield Lab(api, await connect(), (node, other), surging("20s"))
    await api.delete(api.here("deployments", "web", group=APPS), {"propagationPolicy": "Background"})
    await api.delete(api.here("pods"), {"gracePeriodSeconds": 0})
    await api.delete(f"/api/v1/nodes/{other}")


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("strategy", SURGES)
async def test_the_old_pod_goes_when_the_replacement_is_available(lab: Lab, strategy: Strategy, replicas: int) -> None:
    await lab.deploy(replicas)
    move = await lab.begin(strategy)
    done = await lab.finish()

    assert (done.state, done.id) == (MoveState.DONE, move.id), done.outcome
    assert "as planned" in done.outcome
    pods = await lab.pods()
    assert move.pod.uid not in {pod.uid for pod in pods}
    assert sorted(pod.node or "" for pod in pods) == sorted([lab.nodes[1], *[lab.nodes[0]] * (replicas - 1)])
    assert lab.least_ready >= replicas
    assert lab.journal.writes == 2
    await lab.is_clean(replicas)


@pytest.mark.parametrize("strategy", SURGES)
async def test_a_replacement_that_does_not_become_ready_is_taken_back(lab: Lab, strategy: Strategy) -> None:
    await lab.deploy(2)
    lab.settings = surging("1s")
    lab.ready = {lab.nodes[0]}
    move = await lab.begin(strategy)
    failed = await lab.finish()

    assert failed.state is MoveState.FAILED
    assert "not Ready until the deadline" in failed.outcome or "not scheduled" in failed.outcome
    assert move.pod.uid in {pod.uid for pod in await lab.pods()}
    assert lab.least_ready == 2
    await lab.is_clean(2)


@pytest.mark.parametrize("strategy", SURGES)
async def test_a_replacement_on_the_source_is_taken_back_and_the_old_pod_stays(lab: Lab, strategy: Strategy) -> None:
    await lab.deploy(2)
    move = await lab.begin(strategy)
    lab.place = lab.nodes[0]
    failed = await lab.finish()

    assert (failed.state, "came back to" in failed.outcome) == (MoveState.FAILED, True)
    assert move.pod.uid in {pod.uid for pod in await lab.pods()}
    assert lab.least_ready == 2
    await lab.is_clean(2)


async def test_a_users_own_scale_in_mid_move_wins(lab: Lab) -> None:
    await lab.deploy(2)
    lab.place = None
    await lab.begin(Strategy.SCALE_SURGE)
    lab.place = None
    assert await lab.replicas() == 3
    path = lab.api.here("deployments", "web/scale", group=APPS)
    assert (await lab.api.patch(path, {"spec": {"replicas": 5}})).status == 200
    lab.place = lab.nodes[1]
    failed = await lab.finish()
    await lab.until(lambda pods: sum(pod.ready for pod in pods) == 5)

    assert (failed.state, "scaled it to 5" in failed.outcome) == (MoveState.FAILED, True)
    await lab.is_clean(5)


async def test_a_served_pod_without_hook_is_released_and_not_scaled_away(lab: Lab) -> None:
    await lab.deploy(1, pre_stop=False)
    snapshot = await lab.snapshot()
    (pod,) = snapshot.cluster.pods.values()
    chosen = Strategies(snapshot, lab.settings.execution).of(pod)
    assert chosen.strategy is Strategy.RELEASE_SURGE
    assert "no preStop hook" in chosen.reason
    await lab.begin(chosen.strategy)
    assert await lab.replicas() == 1
    moved = await lab.finish()

    assert (moved.state, moved.strategy) == (MoveState.DONE, Strategy.RELEASE_SURGE)
    assert lab.least_ready == 1
    await lab.is_clean(1)


@pytest.mark.parametrize("strategy", SURGES)
async def test_an_owner_that_is_deleted_in_mid_move_leaves_nothing(lab: Lab, strategy: Strategy) -> None:
    await lab.deploy(1)
    await lab.begin(strategy)
    path = lab.api.here("deployments", "web", group=APPS)
    assert (await lab.api.delete(path, {"propagationPolicy": "Background"})).status == 200
    failed = await lab.finish()
    await lab.until(lambda pods: not pods)

    assert (failed.state, "was deleted" in failed.outcome) == (MoveState.FAILED, True)
    assert lab.journal.moves == {}


@pytest.mark.parametrize("strategy", SURGES)
async def test_a_rollout_in_mid_move_wins(lab: Lab, strategy: Strategy) -> None:
    await lab.deploy(2)
    await lab.begin(strategy)
    patch = {"spec": {"template": {"metadata": {"annotations": {"rolled": "yes"}}}}}
    assert (await lab.api.patch(lab.api.here("deployments", "web", group=APPS), patch)).status == 200
    await lab.api.eventually(
        lambda: lab.api.get(lab.api.here("replicasets", group=APPS)), lambda found: len(found.names) == 2
    )
    await lab.finish()
    await lab.until(lambda pods: len({pod.template_hash for pod in pods}) == 1 and len(pods) == 2)

    await lab.is_clean(2)


@pytest.mark.parametrize("strategy", SURGES)
async def test_when_the_mode_leaves_act_the_surge_is_taken_back(lab: Lab, strategy: Strategy) -> None:
    await lab.deploy(1)
    move = await lab.begin(strategy)
    lab.place = None
    stopped = await lab.finish(stopping=True)

    assert (stopped.state, "mode" in stopped.outcome) == (MoveState.FAILED, True)
    assert [pod.uid for pod in await lab.pods()] == [move.pod.uid]
    await lab.is_clean(1)


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("strategy", SURGES)
async def test_lost_requests_and_answers_are_read_back(lab: Lab, strategy: Strategy, loss: Loss) -> None:
    await lab.deploy(1)
    lab.connection.losses = [loss]
    await lab.begin(strategy)
    lab.connection.losses = [loss, None, loss]
    done = await lab.finish()

    assert done.state is MoveState.DONE, done.outcome
    await lab.is_clean(1)


@pytest.mark.parametrize("strategy", SURGES)
async def test_a_new_process_finishes_what_the_journal_holds(lab: Lab, strategy: Strategy) -> None:
    await lab.deploy(1)
    move = await lab.begin(strategy)
    for _ in range(12):
        entries = tuple(lab.journal.moves.values())
        if not entries:
            break
        lab.restart()
        await lab.executor.resume(entries)
        await lab.kubelet()
        await lab.cycle()
    done = await lab.finish() if lab.executor.busy else lab.changed[-1]

    assert done.state is MoveState.DONE, done.outcome
    assert move.pod.uid not in {pod.uid for pod in await lab.pods()}
    await lab.is_clean(1)


async def test_a_patch_names_the_pod_and_the_version_it_means(lab: Lab) -> None:
    await lab.deploy(1)
    (pod,) = await lab.pods()
    surges = ClusterWriter(lab.connection, SystemClock()).surges

    assert (await surges.patch_pod(structs.replace(pod, uid="another"), labels={"a": "b"})).outcome == "gone"
    assert (await surges.patch_pod(pod, labels={"a": "b"}, annotations={DELETION_COST: "1"})).outcome == "done"
    assert (await surges.patch_pod(pod, labels={"a": None})).outcome == "later", "the pod has changed since it was seen"
    assert (await surges.patch_pod(pod, labels={"a": "b"})).outcome == "already"
    (seen,) = await lab.pods()
    assert (await surges.patch_pod(seen, labels={"a": None}, annotations={DELETION_COST: None})).outcome == "done"
    (after,) = await lab.pods()
    assert (after.labels, after.annotations) == (pod.labels, pod.annotations)


@pytest.mark.parametrize("call", ["release", "detach", "cost"])
async def test_a_patch_of_a_past_leader_is_refused_after_its_successor_took_the_move_back(lab: Lab, call: str) -> None:
    """Also where there was nothing to take back."""
    await lab.deploy(1)
    (pod,) = await lab.pods()
    writer = ClusterWriter(lab.connection, SystemClock())
    move = make_move(pod, lab.nodes[1], "undoing", old_cost="" if call == "cost" else None)
    seen = Seen(0.0, make_view([pod], []), lab.settings.execution, old=pod, new=None)
    undo = Call.CLEAR_COSTS if call == "cost" else Call.TAKE_BACK
    assert (await make_call(undo, move, seen, writer, NoSteering(), "memory")).outcome == "done"

    late: dict[str, dict[str, Any]] = {
        "release": {"labels": {"pod-template-hash": None}},
        "detach": {"labels": {"app": None}},
        "cost": {"annotations": {DELETION_COST: "-1"}},
    }
    assert (await writer.surges.patch_pod(pod, **late[call])).outcome == "later"
    (after,) = await lab.pods()
    assert after.labels == pod.labels
    assert DELETION_COST not in after.annotations


@pytest.mark.parametrize(("strategy", "detached"), [(SURGES[0], False), (SURGES[1], False), (SURGES[1], True)])
async def test_a_surge_whose_entry_somebody_deleted_is_found_by_its_marks(
    lab: Lab, strategy: Strategy, detached: bool
) -> None:
    """The process ends before it writes the entry again. The next one knows nothing but what the cluster shows."""
    await lab.deploy(2)
    move = await lab.begin(strategy)
    if detached:
        await lab.until(lambda pods: sum(pod.ready and pod.node == lab.nodes[1] for pod in pods) == 1)
        lab.settings = surging("20s", drain="20s")
        async with asyncio.timeout(30):  # the endpoints of the Service follow a moment later
            while sum("app" in pod.labels for pod in await lab.pods()) != 2:
                await lab.cycle()
                await asyncio.sleep(0.05)
    lab.journal.moves.clear()
    lab.restart()
    for _ in range(2):
        view = (await lab.snapshot()).cluster
        assert not lab.executor.busy
        await lab.executor.take_back_forgotten(view, view.at)
    assert [each.id for each in lab.journal.moves.values()] == [move.id]
    failed = await lab.finish()

    assert (failed.state, failed.id) == (MoveState.FAILED, move.id)
    assert "its journal entry was deleted" in failed.outcome
    assert move.pod.uid in {pod.uid for pod in await lab.pods()}
    assert lab.least_ready >= 2
    await lab.is_clean(2)
    await lab.is_not_marked()


async def test_a_number_that_somebody_else_sets_is_not_marked_as_ours(lab: Lab) -> None:
    await lab.deploy(2)
    await lab.begin(Strategy.SCALE_SURGE)
    assert (await lab.deployment()).surge.startswith("memory/")
    path = lab.api.here("deployments", "web/scale", group=APPS)
    assert (await lab.api.patch(path, {"spec": {"replicas": 4}})).status == 200
    assert (await lab.deployment()).surge == ""
    assert (await lab.api.patch(path, {"spec": {"replicas": 3}})).status == 200
    assert (await lab.deployment()).surge == ""
