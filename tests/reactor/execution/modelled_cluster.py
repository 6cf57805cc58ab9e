"""A Deployment with its controllers, scheduler and kubelet, small enough to explore every course of a move.

It answers the calls of an executor. Before and after each call it asks `fault`, which may lose the request or the
answer, hold the request back, refuse the call, or end the process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, cast

from reactor.cluster.decoding.workloads import SURGE_MANAGER
from reactor.cluster.records import LabelSelector, Owner, Pod, PodDisruptionBudget, Workload
from reactor.cluster.surge_writes import DELETION_COST, SURGE, TAKEN_BACK, Answer, CallAnswer, OwnerNow, ServedBy
from reactor.cluster.view import ClusterView
from reactor.cluster.writes import ClusterWriter, Eviction, EvictionAnswer
from reactor.errors import Unreachable
from reactor.execution.journal import JournalContents, JournalError, SavedState
from reactor.execution.steering import MOVE_LABEL
from reactor.state.moves import Move
from reactor.state.steering import SteeringStatus
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_pod, make_workload

WANTED = 2
SERVICE = {"app": "web"}
DEPLOYMENT = Owner("Deployment", "web", "uid-deployment")
HASH = "pod-template-hash"


class Crash(BaseException):
    """The process ends here."""


class Fault(StrEnum):
    CRASH_BEFORE = "the process ends before the call"
    CRASH_AFTER = "the process ends before the answer"
    UNSENT = "the request is lost"
    LOST = "the answer is lost"
    REFUSED = "the API refuses"
    HELD_BACK = "the request is held back and may still arrive"
    """Of a patch of a pod; other requests are lost."""


class Happening(StrEnum):
    """What others do in mid-move."""

    SCALED_UP = "a user scales up"
    SCALED_DOWN = "a user scales down"
    SCALED_BACK = "a user sets the replicas that were there before"
    OLD_DELETED = "a user deletes the old pod"
    NEW_DELETED = "a user deletes the newest pod"
    OWNER_DELETED = "the Deployment is deleted"
    ROLLED_OUT = "the Deployment is rolled out"
    NEVER_READY = "pods do not become Ready on the target"
    ON_SOURCE = "pods land on the source"
    NO_CREATION = "no pod can be created"
    TARGET_LOST = "the target takes no pods any more"
    PDB = "a PDB that allows nothing appears"
    STOPPED = "mode is not act any more"
    FORGOTTEN = "the journal entry is deleted, and the process ends"


@dataclass(frozen=True)
class ModelPod:
    uid: str
    labels: tuple[tuple[str, str], ...]
    owner: str = ""
    """The hash of its ReplicaSet; empty without one."""
    node: str | None = None
    ready: bool = False
    cost: str = ""
    deleting: bool = False
    age: int = 0
    taken_back: str = ""
    mark: str = ""

    @property
    def version(self) -> str:
        """Within one cycle no pod changes back to what it was."""
        return repr(self)


@dataclass(frozen=True)
class Patch:
    """Of the pod as it was seen: a change of it meanwhile refuses the patch."""

    uid: str
    labels: tuple[tuple[str, str | None], ...] = ()
    annotations: tuple[tuple[str, str | None], ...] = ()

    def applied_to(self, pod: ModelPod) -> ModelPod:
        labels = {key: value for key, value in {**dict(pod.labels), **dict(self.labels)}.items() if value is not None}
        found = {**_annotations(pod), **dict(self.annotations)}
        return replace(
            pod,
            labels=tuple(sorted(labels.items())),
            cost=found.get(DELETION_COST) or "",
            taken_back=found.get(TAKEN_BACK) or "",
            mark=found.get(SURGE) or "",
        )


@dataclass(frozen=True)
class World:
    """Everything that is in the cluster. Each change makes a new one."""

    pods: tuple[ModelPod, ...]
    replicas: int = WANTED
    mark: str = ""
    """The field manager of the replicas."""
    generation: int = 1
    template: str = "a"
    exists: bool = True
    sets: tuple[tuple[str, int], ...] = (("a", WANTED),)
    made: int = 0
    hint: tuple[str, bool] | None = None
    now: float = NOW
    happened: Happening | None = None
    scale_ups: int = 0
    scale_downs: int = 0
    evictions: int = 0
    late: Patch | None = None
    """Held back on its way. It is refused as soon as its pod has changed."""

    @property
    def wanted(self) -> int:
        return {Happening.SCALED_UP: WANTED + 3, Happening.SCALED_DOWN: 1}.get(self.happened or Happening.PDB, WANTED)

    @property
    def serving(self) -> int:
        return sum(pod.ready and not pod.deleting and SERVICE.items() <= dict(pod.labels).items() for pod in self.pods)

    @property
    def marked(self) -> bool:
        return bool(self.mark and self.exists) or any(pod.mark for pod in self.pods)

    def pod(self, uid: str) -> ModelPod | None:
        return next((pod for pod in self.pods if pod.uid == uid), None)

    def after(self, before: World) -> World:
        """Without the late patch where its pod has changed since `before`."""
        refused = (
            self.late is not None and self.late == before.late and self.pod(self.late.uid) != before.pod(self.late.uid)
        )
        return replace(self, late=None) if refused else self

    def with_pod(self, changed: ModelPod) -> World:
        return replace(self, pods=tuple(changed if pod.uid == changed.uid else pod for pod in self.pods))

    def hindered(self, happening: Happening) -> bool:
        """Obstacles go away after a long time: an eviction that waits for one ends then."""
        return self.happened is happening and self.now < NOW + 2000


def first_world() -> World:
    labels = (("app", "web"), (HASH, "a"))
    return World(tuple(ModelPod(f"pod-{number}", labels, "a", "n1", ready=True) for number in range(WANTED)))


def happen(world: World, happening: Happening) -> World:
    world = replace(world, happened=happening)
    alive = [pod for pod in world.pods if not pod.deleting]
    if happening in (Happening.SCALED_UP, Happening.SCALED_DOWN, Happening.SCALED_BACK):
        changed = world.replicas != world.wanted
        mark = "" if changed else world.mark
        return replace(world, replicas=world.wanted, mark=mark, generation=world.generation + changed)
    if happening is Happening.OWNER_DELETED:
        return replace(world, exists=False)
    if happening is Happening.ROLLED_OUT:
        return replace(world, template="b", generation=world.generation + 1, sets=(*world.sets, ("b", 0)))
    if happening is Happening.OLD_DELETED:
        return replace(world, pods=tuple(replace(p, deleting=True) if p.uid == "pod-0" else p for p in world.pods))
    if happening is Happening.NEW_DELETED and alive:
        newest = max(alive, key=lambda pod: pod.age)
        return world.with_pod(replace(newest, deleting=True))
    return world


def arrived(world: World) -> World:
    """The late patch is carried out."""
    assert world.late is not None
    found = world.pod(world.late.uid)
    landed = replace(world, late=None)
    return landed if found is None else landed.with_pod(world.late.applied_to(found))


def controlled(world: World) -> World:
    """One pass of every controller, the scheduler and the kubelets."""
    return _controlled(world).after(world)


def _controlled(world: World) -> World:
    world = replace(world, pods=tuple(pod for pod in world.pods if not pod.deleting))
    if not world.exists:
        return replace(world, sets=(), pods=tuple(pod for pod in world.pods if not pod.owner))
    world = _rolled(_bound(world))
    for name, replicas in world.sets:
        world = _replica_set(world, name, replicas)
    return world


def _bound(world: World) -> World:
    place = "n1" if world.happened is Happening.ON_SOURCE else "n2"
    if world.hint is not None and world.hint[1]:
        place = "n2"
    pods = []
    for pod in world.pods:
        if pod.node is None:
            pods.append(replace(pod, node=place))
        elif not pod.ready and not (world.hindered(Happening.NEVER_READY) and pod.node == "n2"):
            pods.append(replace(pod, ready=True))
        else:
            pods.append(pod)
    return replace(world, pods=tuple(pods))


def _rolled(world: World) -> World:
    """Without a rollout the ReplicaSet has what the Deployment wants; with one the new set grows, then the old goes."""
    sets = dict(world.sets)
    if len(sets) == 1:
        sets["a"] = world.replicas
    elif sum(pod.owner == "b" and pod.ready for pod in world.pods) >= world.replicas:
        sets |= {"a": 0, "b": world.replicas}
    else:
        sets["b"] = world.replicas
    return replace(world, sets=tuple(sets.items()))


def _replica_set(world: World, name: str, replicas: int) -> World:
    pods = []
    for pod in world.pods:
        matches = {"app": "web", HASH: name}.items() <= dict(pod.labels).items()
        if pod.owner == name and not matches:
            pods.append(replace(pod, owner=""))
        elif not pod.owner and matches:
            pods.append(replace(pod, owner=name))
        else:
            pods.append(pod)
    world = replace(world, pods=tuple(pods))
    mine = [pod for pod in world.pods if pod.owner == name and not pod.deleting]
    for _ in range(replicas - len(mine)):
        if world.hindered(Happening.NO_CREATION):
            break
        stamp = ((MOVE_LABEL, world.hint[0]),) if world.hint is not None and name == "a" else ()
        labels = (("app", "web"), (HASH, name), *stamp)
        made = world.made + 1
        world = replace(world, made=made, pods=(*world.pods, ModelPod(f"new-{made}", labels, name, age=made)))
    order = sorted(mine, key=lambda pod: (pod.node is not None, pod.ready, int(pod.cost or 0), -pod.age))
    for pod in order[: max(0, len(mine) - replicas)]:
        world = world.with_pod(replace(pod, deleting=True))
    return world


def view_of(world: World) -> ClusterView:
    owners = {name: Owner("ReplicaSet", f"web-{name}", f"uid-{name}") for name, _ in world.sets}
    pods = [_record(pod, owners) for pod in world.pods]
    target_ready = not world.hindered(Happening.TARGET_LOST)
    nodes = [make_node("n1", 64.0), make_node("n2", 64.0, ready=target_ready)]
    workloads = [
        make_workload(owners[name], replicas=replicas, owner=DEPLOYMENT if world.exists else None)
        for name, replicas in world.sets
    ]
    if world.exists:
        workloads.append(_deployment(world))
    pdbs: tuple[PodDisruptionBudget, ...] = ()
    if world.hindered(Happening.PDB):
        pdbs = (PodDisruptionBudget("uid-pdb", "shop", "pdb", "", LabelSelector(), never=True),)
    return ClusterView(
        at=world.now,
        nodes={node.name: node for node in nodes},
        pods={pod.uid: pod for pod in pods},
        workloads={each.uid: each for each in workloads},
        pdbs=pdbs,
    )


def _deployment(world: World) -> Workload:
    existing = sum(bool(pod.owner) and not pod.deleting for pod in world.pods)
    return make_workload(
        DEPLOYMENT,
        replicas=world.replicas,
        generation=world.generation,
        observed_generation=world.generation,
        existing=existing,
        updated=existing,
        max_surge=1,
        update_strategy="RollingUpdate",
        surge=world.mark.removeprefix(SURGE_MANAGER),
    )


def _record(pod: ModelPod, owners: dict[str, Owner]) -> Pod:
    return make_pod(
        pod.uid,
        uid=pod.uid,
        labels=dict(pod.labels),
        annotations=_annotations(pod),
        resource_version=pod.version,
        owner=owners.get(pod.owner),
        node=pod.node,
        ready=pod.ready,
        phase="Running" if pod.ready else "Pending",
        deleting=NOW if pod.deleting else None,
        created=NOW + pod.age,
        scheduler_name="default-scheduler",
    )


def _annotations(pod: ModelPod) -> dict[str, str]:
    found = {DELETION_COST: pod.cost, TAKEN_BACK: pod.taken_back, SURGE: pod.mark}
    return {key: value for key, value in found.items() if value}


@dataclass
class ModelCluster:
    """Writer, steering and journal of an executor on a world."""

    place = "model"
    world: World
    entries: dict[str, Move] = field(default_factory=dict)
    fault: Callable[[], Fault | None] = lambda: None
    least: int = 0
    """The fewest pods that were Ready and served since the start of the cycle."""
    journal_writes: int = 0
    status: SteeringStatus = field(default_factory=lambda: SteeringStatus(policy_works=True))

    def change(self, world: World) -> None:
        self.world = world.after(self.world)
        self.least = min(self.least, world.serving)

    @property
    def writer(self) -> ClusterWriter:
        return cast(ClusterWriter, self)

    @property
    def surges(self) -> ModelCluster:
        return self

    def _called(
        self,
        effect: Callable[[], Any],
        refused: Any,
        unanswered: Any,
        hold_back: Callable[[], None] = lambda: None,
    ) -> Any:
        fault = self.fault()
        if fault is Fault.HELD_BACK:
            hold_back()
        if fault is Fault.CRASH_BEFORE:
            raise Crash
        if fault in (Fault.UNSENT, Fault.HELD_BACK):
            return unanswered
        if fault is Fault.REFUSED:
            return refused
        answer = effect()
        if fault is Fault.CRASH_AFTER:
            raise Crash
        return unanswered if fault is Fault.LOST else answer

    # The writer.

    async def evict(self, pod: Pod) -> EvictionAnswer:
        def effect() -> EvictionAnswer:
            found = self._pod(pod.uid)
            if found is None:
                return EvictionAnswer(Eviction.GONE)
            if not found.deleting:
                counted = replace(self.world, evictions=self.world.evictions + 1)
                self.change(counted.with_pod(replace(found, deleting=True)))
            return EvictionAnswer(Eviction.ACCEPTED)

        refused, unanswered = EvictionAnswer(Eviction.PDB), EvictionAnswer(Eviction.UNKNOWN)
        answer: EvictionAnswer = self._called(effect, refused, unanswered)
        return answer

    async def read_owner(self, owner: Owner, namespace: str) -> OwnerNow | None:
        self._read(namespace)
        if not self.world.exists:
            return None
        failure = "quota" if self.world.hindered(Happening.NO_CREATION) else ""
        settled = sum(bool(pod.owner) and not pod.deleting for pod in self.world.pods) == self.world.replicas
        return OwnerNow("1", self.world.generation, self.world.replicas, settled, failure=failure)

    async def scale(
        self,
        owner: Owner,
        namespace: str,
        *,
        expected: int,
        wanted: int,
        generation: int | None = None,
        manager: str | None = None,
    ) -> CallAnswer:
        def effect() -> CallAnswer:
            world = self.world
            if not world.exists:
                return CallAnswer(Answer.GONE)
            if world.replicas == wanted:
                return CallAnswer(Answer.ALREADY)
            if world.replicas != expected or generation not in (None, world.generation):
                return CallAnswer(Answer.CHANGED, f"{world.replicas} replicas")
            ups, downs = wanted > expected, wanted < expected
            self.change(
                replace(
                    world,
                    replicas=wanted,
                    mark=manager or "",
                    generation=world.generation + 1,
                    scale_ups=world.scale_ups + ups,
                    scale_downs=world.scale_downs + downs,
                )
            )
            return CallAnswer(Answer.DONE)

        assert (owner.uid, namespace) == (DEPLOYMENT.uid, "shop")
        answer: CallAnswer = self._called(effect, CallAnswer(Answer.REFUSED), CallAnswer(Answer.LATER))
        return answer

    async def patch_pod(
        self,
        pod: Pod,
        *,
        labels: dict[str, str | None] | None = None,
        annotations: dict[str, str | None] | None = None,
    ) -> CallAnswer:
        patch = Patch(pod.uid, tuple((labels or {}).items()), tuple((annotations or {}).items()))

        def effect() -> CallAnswer:
            found = self._pod(pod.uid)
            if found is None:
                return CallAnswer(Answer.GONE)
            if found.version != pod.resource_version:
                done = patch.applied_to(found) == found
                return CallAnswer(Answer.ALREADY if done else Answer.LATER, "it has changed since it was seen")
            self.change(self.world.with_pod(patch.applied_to(found)))
            return CallAnswer(Answer.DONE)

        def hold_back() -> None:
            found = self._pod(pod.uid)
            if found is not None and found.version == pod.resource_version:
                self.world = replace(self.world, late=patch)

        answer: CallAnswer = self._called(effect, CallAnswer(Answer.REFUSED), CallAnswer(Answer.LATER), hold_back)
        return answer

    async def services_of(self, pod: Pod) -> ServedBy:
        self._read(pod.namespace)
        if not SERVICE.items() <= pod.labels.items():
            return ServedBy()
        found = self._pod(pod.uid)
        selected = found is not None and SERVICE.items() <= dict(found.labels).items()
        serves = found is not None and selected and found.ready and not found.deleting
        return ServedBy((SERVICE,), 1 if serves else 0)

    # Steering.

    async def hint(self, move: Move, *, hard: bool = False) -> None:
        self._written(lambda: self.change(replace(self.world, hint=(move.id, hard))), Unreachable("hint"))

    async def withdraw(self, move_ids: Collection[str]) -> None:
        def effect() -> None:
            if self.world.hint is not None and self.world.hint[0] in move_ids:
                self.change(replace(self.world, hint=None))

        self._written(effect, Unreachable("hint"))

    async def withdraw_others(self, move_ids: Collection[str]) -> None:
        if self.world.hint is not None and self.world.hint[0] not in move_ids:
            self.change(replace(self.world, hint=None))

    def doubt(self) -> None:
        """The model stamps always."""

    # The journal.

    async def load(self) -> JournalContents:
        return JournalContents(tuple(self.entries.values()))

    async def write(self, move: Move) -> None:
        def effect() -> None:
            self.entries[move.id] = move
            self.journal_writes += 1

        self._written(effect, JournalError("journal"))

    async def remove(self, move_id: str) -> None:
        self._written(lambda: self.entries.pop(move_id, None), JournalError("journal"))

    async def write_state(self, state: SavedState) -> None:
        raise AssertionError("a move writes no state")

    def _written(self, effect: Callable[[], object], error: Exception) -> None:
        def done() -> bool:
            effect()
            return True

        if not self._called(done, False, False):
            raise error

    def _read(self, namespace: str) -> None:
        assert namespace == "shop"
        fault = self.fault()
        if fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
            raise Crash
        if fault is not None:
            raise Unreachable("no answer")

    def _pod(self, uid: str) -> ModelPod | None:
        return self.world.pod(uid)
