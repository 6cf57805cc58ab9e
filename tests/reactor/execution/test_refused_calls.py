"""A call that has to be repeated and is refused: the right to it may be missing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import pytest

from matching.problem import Strategy
from reactor.cluster.surge_writes import Answer, CallAnswer
from reactor.cluster.view import ClusterView
from reactor.execution.executor import Executor
from reactor.execution.move_states import after_answer, journal_entry
from reactor.state.moves import Call, Move, MoveState
from reactor.state.snapshot import Snapshot
from tests.reactor.execution.modelled_cluster import ModelCluster, controlled, first_world, view_of
from tests.support.clock import NOW
from tests.support.cluster import make_eligibility, make_settings, make_snapshot
from tests.support.moves import make_plan, plan_move


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor.execution.executor.log", Mock())


class Forbidding(ModelCluster):
    """Says no to the writes of a surge while `forbids`; reads and journal go on."""

    forbids = False

    def __init__(self) -> None:
        super().__init__(first_world())
        self.refused: list[float] = []

    async def scale(self, *given: Any, **named: Any) -> CallAnswer:
        return self._refusal() if self.forbids else await super().scale(*given, **named)

    async def patch_pod(self, *given: Any, **named: Any) -> CallAnswer:
        return self._refusal() if self.forbids else await super().patch_pod(*given, **named)

    def _refusal(self) -> CallAnswer:
        self.refused.append(self.world.now)
        return CallAnswer(Answer.REFUSED, "is forbidden")


class Lab:
    def __init__(self, strategy: Strategy) -> None:
        execution = {"strategies": [strategy], "readyDeadline": "30s", "drainDelay": 0}
        managed = {"anySchedulerNamespaces": ["*"]}
        self.settings = make_settings(mode="act", managed=managed, execution=execution, placement={"steering": "none"})
        self.cluster = Forbidding()
        self.executor = Executor(self.cluster.writer, dict, self.cluster, self.cluster)
        self.changed: list[Move] = []
        snapshot = self._snapshot(view_of(self.cluster.world))
        pod = snapshot.cluster.pods["pod-0"]
        self.executor.adopt(make_plan(replace(plan_move(pod, "n2"), strategy=strategy)), "plan", snapshot)

    async def start(self) -> None:
        snapshot = self._snapshot(view_of(self.cluster.world))
        await self.executor.start(make_eligibility(snapshot, self.settings), self.changed.append)

    async def take_back(self, seconds: int) -> None:
        """With a cycle each tenth of a second."""
        for _ in range(seconds * 10):
            world = controlled(replace(self.cluster.world, now=self.cluster.world.now + 0.1))
            self.cluster.change(world)
            self.changed += self.executor.follow(view_of(world), world.now, self.settings)
            await self.executor.proceed(view_of(world), world.now, self.settings, self.changed.append, stopping=True)

    def _snapshot(self, view: ClusterView) -> Snapshot:
        return make_snapshot(
            view.pods.values(),
            view.nodes.values(),
            now=view.at,
            workloads=view.workloads.values(),
            moves=self.executor.active_moves(),
        )


@pytest.mark.parametrize("strategy", [Strategy.SCALE_SURGE, Strategy.RELEASE_SURGE])
async def test_what_is_refused_is_repeated_seldom_said_and_made_good(strategy: Strategy) -> None:
    lab = Lab(strategy)
    await lab.start()
    lab.cluster.forbids = True
    await lab.take_back(600)

    (move,) = lab.executor.active_moves().refused
    assert move.state is MoveState.UNDOING
    assert move.refused.startswith(("scaleDown", "takeBack"))
    pauses = [later - earlier for earlier, later in pairwise(lab.cluster.refused)]
    assert len(pauses) < 30
    assert 59 < max(pauses) < 61

    lab.cluster.forbids = False
    await lab.take_back(65)
    assert lab.changed[-1].state is MoveState.FAILED
    assert lab.executor.active_moves().moves == ()
    assert lab.cluster.world.replicas == len(lab.cluster.world.pods) == 2
    assert all(pod.owner for pod in lab.cluster.world.pods)


@pytest.mark.parametrize("call", [Call.CLEAR_COSTS, Call.TAKE_BACK, Call.SCALE_DOWN, Call.REMOVE])
def test_the_reason_stays_with_the_move_until_the_call_succeeds(call: Call) -> None:
    lab = Lab(Strategy.RELEASE_SURGE)
    (move,) = lab.executor.active_moves().moves
    move = replace(move, state=MoveState.UNDOING)
    refused = after_answer(move, call, Answer.REFUSED, "pods is forbidden", NOW, repeated=False)
    assert refused == replace(move, refused=f"{call}: pods is forbidden")
    assert journal_entry(refused) == journal_entry(move)
    assert after_answer(refused, call, Answer.DONE, "", NOW, repeated=False).refused == ""
