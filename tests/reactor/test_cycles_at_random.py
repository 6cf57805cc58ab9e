"""Whatever happens in the cluster, in any order, some things never do."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from reactor.cluster.kinds import Kind
from reactor.cluster.records import Node, Pod
from reactor.cluster.writes import Binding, BindingAnswer, Eviction, EvictionAnswer
from reactor.decision.decide import Trigger
from reactor.decision.eligibility import PROTECTED
from reactor.settings.model import Mode
from tests.support.cluster import (
    GIB,
    make_eligibility,
    make_node,
    make_owner,
    make_pdb,
    make_pending,
    make_pod,
    make_settings,
)
from tests.support.rig import Rig

APPS = ("web", "db", "api", "job")
NODES = ("n1", "n2", "n3")


@dataclass
class Chaos:
    """A cluster that changes at random, and the controller on it."""

    pick: random.Random
    rig: Rig = field(default_factory=Rig)
    made: int = 0

    def __post_init__(self) -> None:
        self.rig.settings = make_settings(mode="act", execution={"max_moves_in_flight": self.pick.choice([1, 2, 3])})
        pods = [self._pod(app, self.pick.choice(NODES[:2])) for app in APPS for _ in range(3)]
        self.rig.sync(*pods, *(make_node(name) for name in NODES))

    def _pod(self, app: str, node: str | None) -> Pod:
        self.made += 1
        build = make_pod if node else make_pending
        requests = {"cpu": self.pick.choice([0.1, 0.5, 1.0]), "memory": 0.2 * GIB}
        return build(f"{app}-{self.made}", node=node, requests=requests, created=self.rig.clock.now())

    @property
    def pods(self) -> list[Pod]:
        return [pod for pod in self.rig.state.mirror.records(Kind.PODS).values() if isinstance(pod, Pod)]

    def node(self, name: str) -> Node:
        found = self.rig.state.mirror.records(Kind.NODES)[name]
        assert isinstance(found, Node)
        return found

    def happen(self) -> None:
        self.pick.choice(
            [
                self.measure,
                self.measure,
                self.fail,
                self.fail,
                self.owners_replace,
                self.owners_replace,
                self.kubelets_run,
                self.kubelets_run,
                self.somebody_goes,
                self.a_node_changes,
                self.a_budget_changes,
                self.the_mode_changes,
                self.the_api_is_odd,
                self.time_goes_by,
                self.an_owner_goes,
            ]
        )()

    def measure(self) -> None:
        use = {pod.name: self.pick.uniform(0.1, 1.5) for pod in self.pods if pod.node and self.pick.random() < 0.9}
        on = {name: sum(use.get(pod.name, 0.3) for pod in self.pods if pod.node == name) for name in NODES}
        self.rig.measure(use, {name: cpu + 0.1 for name, cpu in on.items() if self.pick.random() < 0.9}, 0.1 * GIB)

    def fail(self) -> None:
        running = [pod for pod in self.pods if pod.node]
        if running:
            self.rig.fail(self.pick.choice(running), self.pick.choice([1, 8, 25]))

    def owners_replace(self) -> None:
        """What was evicted goes, and a successor comes."""
        for name in self.rig.writer.evicted:
            for pod in self.pods:
                if pod.name == name and self.pick.random() < 0.8:
                    self.rig.remove(pod)
                    if self.pick.random() < 0.9:
                        self.rig.put(self._pod(name.partition("-")[0], None))

    def kubelets_run(self) -> None:
        for name, node in self.rig.writer.bound:
            for pod in self.pods:
                if pod.name == name and (pod.node is None or not pod.ready):
                    self.rig.run_pod(pod, pod.node or node, ready=self.pick.random() < 0.7)

    def somebody_goes(self) -> None:
        pod = self.pick.choice(self.pods)
        self.rig.put(replace(pod, deleting=self.rig.clock.now())) if self.pick.random() < 0.5 else self.rig.remove(pod)

    def a_node_changes(self) -> None:
        name = self.pick.choice(NODES)
        ready, cordoned = self.pick.random() < 0.8, self.pick.random() < 0.2
        self.rig.put(make_node(name, ready=ready, unschedulable=cordoned))

    def a_budget_changes(self) -> None:
        self.rig.put(make_pdb("budget", self.pick.choice([0, 1]), app=self.pick.choice(APPS)))

    def the_mode_changes(self) -> None:
        mode = self.pick.choice(["act", "act", "act", "observe"])
        self.rig.settings = self.rig.settings.model_copy(update={"mode": Mode(mode)})

    def the_api_is_odd(self) -> None:
        for pod in self.pods:
            if self.pick.random() < 0.1:
                self.rig.writer.evictions[pod.name] = EvictionAnswer(self.pick.choice(list(Eviction)), "odd", 3.0)
                self.rig.writer.bindings[pod.name] = BindingAnswer(self.pick.choice(list(Binding)), "odd", 3.0)

    def time_goes_by(self) -> None:
        self.rig.clock.set(self.rig.clock.now() + self.pick.choice([1, 10, 45, 130, 200]))

    def an_owner_goes(self) -> None:
        if self.pick.random() < 0.1:
            app = self.pick.choice(APPS)
            self.rig.state.mirror.remove(Kind.REPLICA_SETS, make_owner(f"{app}-1a2b").uid)

    def calm_down(self) -> None:
        self.rig.put(*(make_node(name) for name in NODES))
        self.rig.settings = make_settings(mode="act")
        self.rig.writer.evictions.clear()
        self.rig.writer.bindings.clear()

    def recover(self) -> None:
        """Half a minute in which everybody does his work."""
        for pod in self.pods:
            if pod.deleting is not None or pod.name in self.rig.writer.evicted:
                self.rig.remove(pod)
                self.rig.put(self._pod(pod.name.partition("-")[0], None))
        bound = dict(self.rig.writer.bound)
        for pod in self.pods:
            if pod.name in bound and not pod.ready:
                self.rig.run_pod(pod, bound[pod.name])
        self.rig.clock.set(self.rig.clock.now() + 30)

    async def run_cycle(self) -> None:
        rig = self.rig
        evicted, bound = len(rig.writer.evicted), len(rig.writer.bound)
        before = rig.snapshot()
        await rig.run_cycle(self.pick.choice([Trigger.UNHAPPY, Trigger.UNHAPPY, Trigger.INTERVAL]))
        flying = rig.executor.active_moves().in_flight
        assert len(flying) <= rig.settings.execution.max_moves_in_flight
        assert len({move.workload for move in flying}) == len(flying)
        by_name = {pod.name: pod for pod in before.cluster.pods.values()}
        for name in rig.writer.evicted[evicted:]:
            assert rig.settings.mode is Mode.ACT
            assert make_eligibility(before, rig.settings).why_not(by_name[name], PROTECTED) is None
        taken = {name: self._requested(before.cluster.pods_on(name)) for name in NODES}
        replacements = {move.replacement for move in flying}
        for name, node in rig.writer.bound[bound:]:
            assert rig.settings.mode is Mode.ACT or by_name[name].uid in replacements
            assert self.node(node).ready
            assert not self.node(node).unschedulable
            taken[node] += by_name[name].requests["cpu"]
            assert taken[node] <= self.node(node).allocatable["cpu"] + 1e-6

    @staticmethod
    def _requested(pods: tuple[Pod, ...]) -> float:
        return sum(pod.requests["cpu"] for pod in pods if not pod.finished)


@pytest.mark.parametrize("seed", range(8))
async def test_the_limits_hold_whatever_happens(seed: int) -> None:
    chaos = Chaos(random.Random(seed))

    for _ in range(30):
        for _ in range(chaos.pick.randint(1, 4)):
            chaos.happen()
        await chaos.run_cycle()

    assert chaos.rig.rows.decisions


@pytest.mark.parametrize("seed", range(100, 104))
async def test_after_the_storm_every_move_comes_to_an_end(seed: int) -> None:
    chaos = Chaos(random.Random(seed))
    for _ in range(25):
        chaos.happen()
        await chaos.run_cycle()

    chaos.calm_down()
    for _ in range(20):
        chaos.recover()
        await chaos.rig.run_cycle(Trigger.FINISH)

    assert [(move.pod.key, move.state) for move in chaos.rig.executor.active_moves().moves] == []
