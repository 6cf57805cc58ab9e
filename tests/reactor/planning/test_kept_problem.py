"""A problem that is updated by what has changed is the problem that is built anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from matching.problem import Strategy
from reactor.cluster.kinds import Kind
from reactor.cluster.records import (
    HorizontalPodAutoscaler,
    Namespace,
    Pod,
    Record,
    ResourceQuota,
    Service,
)
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.decide import Trigger, decide
from reactor.decision.eligibility import DO_NOT_MOVE, WINDOW, Eligibility, KeptChecks
from reactor.planning.problem_pods import KeptPods
from reactor.planning.problems import rematch_problem
from reactor.signals.workloads import workload_key
from reactor.state.moves import ActiveMoves
from tests.support.cluster import GIB, make_node, make_owner, make_pdb, make_pod, make_settings, make_workload
from tests.support.rig import Rig

NODES = ("n1", "n2", "n3")
APPS = ("web", "db", "batch")
OWNERS = {app: make_owner(f"{app}-1") for app in APPS}
DEPLOYMENTS = {app: make_owner(app, "Deployment") for app in APPS}
NAMES = [f"p{number}" for number in range(12)]
SETTINGS = {
    strategies: [
        make_settings(mode="act", planner={"scope": scope}, execution={"strategies": strategies})
        for scope in ("cluster", "unhappy")
    ]
    for strategies in (("scaleSurge", "releaseSurge", "evict"), ("evict",))
}

pods = st.builds(
    lambda name, node, app, cpu, protected, ready, gpu, pre_stop: make_pod(
        name,
        node=node,
        owner=OWNERS[app],
        requests={"cpu": cpu, "memory": GIB} | ({"example.org/gpu": 1.0} if gpu else {}),
        annotations={DO_NOT_MOVE: protected} if protected else {},
        ready=ready,
        labels={"app": app},
        pre_stop=pre_stop,
    ),
    st.sampled_from(NAMES),
    st.sampled_from((*NODES, None)),
    st.sampled_from(APPS),
    st.sampled_from((0.1, 0.5, 1.0)),
    st.sampled_from(("", "", "", "true", "2h")),
    st.booleans(),
    st.sampled_from((False, False, False, True)),
    st.sampled_from((False, False, False, True)),
)
apps, some = st.sampled_from(APPS), st.integers(0, 2)
steps = st.one_of(
    pods,
    st.tuples(st.just("gone"), st.sampled_from(NAMES), some),
    st.tuples(st.just("measured"), st.sampled_from(NAMES), st.floats(0.0, 2.0)),
    st.tuples(st.just("fails"), st.sampled_from(NAMES), some),
    st.tuples(st.just("time"), apps, some),
    st.tuples(st.just("starts in"), apps, some),
    st.tuples(st.just("strategies"), apps, some),
    st.tuples(st.sampled_from((Kind.SERVICES, Kind.HPAS)), st.just("not readable"), some),
    st.tuples(st.just(Kind.NODES), st.sampled_from(NODES), some),
    *(
        st.tuples(st.just(kind), apps, some)
        for kind in (
            Kind.REPLICA_SETS,
            Kind.DEPLOYMENTS,
            Kind.PDBS,
            Kind.SERVICES,
            Kind.HPAS,
            Kind.RESOURCE_QUOTAS,
            Kind.NAMESPACES,
        )
    ),
)
Step = Pod | tuple[str, str, float]


def changed_record(kind: Kind, name: str, value: int, version: str) -> Record:
    """`name` is that of an app, or of a node."""
    records: dict[Kind, Callable[[], Record]] = {
        Kind.NODES: lambda: make_node(name, cpu=4.0 + value, resource_version=version),
        Kind.PDBS: lambda: structs.replace(make_pdb(f"pdb-{name}", value % 2, name), resource_version=version),
        Kind.SERVICES: lambda: Service(f"svc-{name}", "shop", name, version, {"app": name} if value else {}),
        Kind.HPAS: lambda: HorizontalPodAutoscaler(
            f"hpa-{name}", "shop", name, version, "Deployment", APPS[value] if value else "another"
        ),
        Kind.RESOURCE_QUOTAS: lambda: ResourceQuota("quota", "shop", "quota", version, {"pods": float(value)}),
        Kind.NAMESPACES: lambda: Namespace("shop", "ns", version, {}, {WINDOW: "not a window"} if value else {}),
    }
    return records[kind]()


class Changes:
    """Takes steps on a rig. A step that is taken twice puts back what the first one did, where that is possible."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.startups: dict[str, float] = {}
        self.strategies = next(iter(SETTINGS))
        self._version = 0

    def take(self, step: Step) -> None:
        self._version += 1
        mirror, version = self.rig.state.mirror, str(self._version)
        if isinstance(step, Pod):
            mirror.upsert(Kind.PODS, structs.replace(step, resource_version=version))
            return
        kind, name, value = step[0], step[1], int(step[2])
        known = mirror.pod(f"uid-{name}")
        if kind == "gone":
            mirror.remove(Kind.PODS, f"uid-{name}")
        elif kind == "measured" and known is not None:
            self.rig.measure({name: step[2]}, dict.fromkeys(NODES, 2.0))
        elif kind == "fails" and known is not None:
            self.rig.fail(known, 20)
        elif kind == "time":
            self.rig.clock.set(self.rig.clock.now() + 1800.0 * value)
        elif kind == "starts in":
            self.startups = {workload_key(pod): 7.0 * value for pod in self._pods_of(name)}
        elif kind == "strategies":
            self.strategies = list(SETTINGS)[value % 2]
        elif name == "not readable":
            mirror.unavailable(Kind(kind))
        elif kind in (Kind.REPLICA_SETS, Kind.DEPLOYMENTS):
            self.scale(name, len(self._pods_of(name)) + value % 2, paused=kind == Kind.DEPLOYMENTS and value == 2)
        elif kind in list(Kind):
            mirror.upsert(Kind(kind), changed_record(Kind(kind), name, value, version))
            mirror.replaced(Kind(kind), list(mirror.records(Kind(kind)).values()))

    def scale(self, app: str, replicas: int, *, paused: bool = False) -> None:
        self._version += 1
        mirror, version = self.rig.state.mirror, str(self._version)
        of_pods = make_workload(OWNERS[app], owner=DEPLOYMENTS[app], replicas=replicas, resource_version=version)
        top = make_workload(DEPLOYMENTS[app], max_surge=1, paused=paused, replicas=replicas, resource_version=version)
        mirror.upsert(Kind.REPLICA_SETS, of_pods)
        mirror.upsert(Kind.DEPLOYMENTS, top)

    def settle(self) -> None:
        """Every owner has the pods that it wants, so that its pods may move."""
        for app in APPS:
            self.scale(app, len(self._pods_of(app)))

    def _pods_of(self, app: str) -> list[Pod]:
        known = self.rig.state.mirror.records(Kind.PODS).values()
        return [pod for pod in known if isinstance(pod, Pod) and pod.owner == OWNERS[app] and pod.active]


@given(st.lists(pods, min_size=4, max_size=12), st.lists(st.lists(steps, max_size=3), min_size=1, max_size=8))
def test_an_updated_problem_is_the_one_that_is_built_anew(first: list[Pod], rounds: list[list[Step]]) -> None:
    changes, checks, kept = Changes(), KeptChecks(), KeptPods()
    rig = changes.rig
    rig.sync(*(make_node(name) for name in NODES), *first)
    changes.settle()
    for batch in rounds:
        for step in batch:
            changes.take(step)
        for chosen in SETTINGS[changes.strategies]:
            frozen = rig.state.freeze(ActiveMoves(), rig.state.start_cycle())
            snapshot = replace(frozen, startup_seconds=changes.startups)
            updated = Eligibility(snapshot, Cooldowns(), chosen, checks)
            own_indexes = replace(snapshot, cluster=replace(snapshot.cluster))
            anew = Eligibility(own_indexes, Cooldowns(), chosen)
            bound = [pod for pod in snapshot.cluster.pods.values() if pod.node is not None]
            assert updated.why_not_all(bound) == anew.why_not_all(bound)
            assert list(updated.strategies.of_all(bound)) == [anew.strategies.of(pod) for pod in bound]
            decision = decide(updated, Trigger.DEMAND)
            assert decision == decide(anew, Trigger.DEMAND)
            assert rematch_problem(updated, decision, kept) == rematch_problem(anew, decision)


def test_a_service_that_appears_or_goes_changes_how_its_pods_are_moved() -> None:
    changes, checks = Changes(), KeptChecks()
    rig, pod = changes.rig, make_pod("p1", owner=OWNERS["web"], labels={"app": "web"})
    rig.sync(make_node("n1"), pod)
    changes.settle()

    def way() -> Strategy | None:
        snapshot = rig.state.freeze(ActiveMoves(), rig.state.start_cycle())
        settings = SETTINGS[changes.strategies][0]
        return Eligibility(snapshot, Cooldowns(), settings, checks).strategies.of_all([pod])[0].strategy

    assert way() is Strategy.SCALE_SURGE
    changes.take((Kind.SERVICES, "web", 1))
    assert way() is Strategy.RELEASE_SURGE
    changes.take((Kind.SERVICES, "web", 0))
    assert way() is Strategy.SCALE_SURGE
    changes.take((Kind.SERVICES, "not readable", 0))
    assert way() is Strategy.RELEASE_SURGE


def test_a_resize_that_the_node_cannot_make_counts_for_its_own_pod_alone() -> None:
    """The pods of a template share their requests, but not what a replacement of each asks for."""
    shared = {"cpu": 0.5, "memory": GIB}
    common = {"owner": OWNERS["web"], "labels": {"app": "web"}, "requests": shared}
    one, other = make_pod("p1", **common), make_pod("p2", **common, infeasible_resize={"cpu": 8.0, "memory": GIB})
    changes = Changes()
    changes.rig.sync(make_node("n1"), one, other)
    changes.settle()
    quota = ResourceQuota("quota", "shop", "quota", "q1", {"requests.cpu": 1.0})
    changes.rig.state.mirror.upsert(Kind.RESOURCE_QUOTAS, quota)
    snapshot = changes.rig.state.freeze(ActiveMoves(), changes.rig.state.start_cycle())
    strategies = Eligibility(snapshot, Cooldowns(), SETTINGS[changes.strategies][0]).strategies
    assert strategies.of(one).strategy is Strategy.SCALE_SURGE
    assert strategies.of(other).strategy is not Strategy.SCALE_SURGE
