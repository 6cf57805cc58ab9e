"""How many API calls a surge takes on a busy cluster, where a cycle runs every 50 ms."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from matching.problem import Strategy
from reactor.cluster.surge_writes import OwnerNow, ServedBy
from reactor.cluster.view import ClusterView
from reactor.execution.executor import Executor
from reactor.state.moves import Move, MoveState
from reactor.state.snapshot import Snapshot
from tests.reactor.execution.modelled_cluster import Happening, ModelCluster, controlled, first_world, view_of
from tests.support.clock import NOW
from tests.support.cluster import make_eligibility, make_settings, make_snapshot
from tests.support.moves import make_plan, plan_move

READY_AFTER = 10.0


class Counting(ModelCluster):
    def __init__(self) -> None:
        super().__init__(first_world())
        self.reads: Counter[str] = Counter()

    async def read_owner(self, *given: Any) -> OwnerNow | None:
        self.reads["owner"] += 1
        return await super().read_owner(*given)

    async def services_of(self, *given: Any) -> ServedBy:
        self.reads["services"] += 1
        return await super().services_of(*given)


@pytest.mark.parametrize(("strategy", "services"), [(Strategy.SCALE_SURGE, 2), (Strategy.RELEASE_SURGE, 4)])
async def test_a_surge_that_waits_reads_next_to_nothing(
    strategy: Strategy, services: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.execution.executor.log", Mock())
    execution = {"strategies": [strategy], "drainDelay": "5s"}
    managed = {"anySchedulerNamespaces": ["*"]}
    settings = make_settings(mode="act", managed=managed, placement={"steering": "none"}, execution=execution)
    cluster = Counting()
    executor = Executor(cluster.writer, dict, cluster, cluster)
    changed: list[Move] = []

    def snapshot(view: ClusterView) -> Snapshot:
        pods, nodes, workloads = view.pods.values(), view.nodes.values(), view.workloads.values()
        return make_snapshot(pods, nodes, now=view.at, workloads=workloads, moves=executor.active_moves())

    first = snapshot(view_of(cluster.world))
    pod = first.cluster.pods["pod-0"]
    executor.adopt(make_plan(replace(plan_move(pod, "n2"), strategy=strategy)), "plan", first)
    await executor.start(make_eligibility(snapshot(view_of(cluster.world)), settings), changed.append)
    for number in range(1, 400):
        now = number / 20
        happened = Happening.NEVER_READY if now < READY_AFTER else None
        cluster.change(controlled(replace(cluster.world, now=NOW + now, happened=happened)))
        view = view_of(cluster.world)
        changed += executor.follow(view, view.at, settings)
        await executor.proceed(view, view.at, settings, changed.append, stopping=False)

    assert changed[-1].state is MoveState.DONE, changed[-1].outcome
    assert cluster.reads["services"] <= services
    assert cluster.reads["owner"] <= 4
