"""What the next problem has in common with the last one is kept up to date between the cycles."""

from __future__ import annotations

import pytest

from reactor.background.next_problem import NextProblem
from reactor.planning import problem_pods
from reactor.state.moves import MoveState
from tests.support.cluster import make_node, make_pod
from tests.support.rig import Rig


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The pods that were made anew, time by time."""
    rounds: list[list[str]] = []
    make = problem_pods._made

    def noted(rows: list[problem_pods.Row], *rest: object) -> object:
        rounds.append([row[0].name for row in rows])
        return make(rows, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(problem_pods, "_made", noted)
    return rounds


async def test_a_reaction_makes_only_the_pods_that_changed_since_the_measurements(made: list[list[str]]) -> None:
    rig, pods = Rig(), [make_pod(f"web-{number}", node="n1") for number in range(3)]
    rig.sync(*pods, make_node("n1"), make_node("n2"))
    rig.measure({pod.name: 1.3 for pod in pods}, {"n1": 3.9, "n2": 0.1})
    await NextProblem(rig.controller.parts).refresh()
    assert made == [["web-0", "web-1", "web-2"]]

    rig.fail(pods[0])
    outcome = await rig.run_cycle()
    assert made[1] == ["web-0"], "what follows asks whether the target has room"
    assert [move.pod.name for move in outcome.executed if move.state is MoveState.EVICTED] == ["web-0"]


async def test_nothing_is_recorded_and_no_pod_moves(made: list[list[str]]) -> None:
    rig, pod = Rig(), make_pod("web-0", node="n1")
    rig.sync(pod, make_node("n1"), make_node("n2"))
    rig.measure({"web-0": 3.9}, {"n1": 3.9, "n2": 0.1})
    rig.fail(pod)
    await NextProblem(rig.controller.parts).refresh()
    assert made
    assert not rig.executor.busy
    assert rig.writer.evicted == []


async def test_not_while_a_move_is_under_way(made: list[list[str]]) -> None:
    rig, pods = Rig(), [make_pod(f"web-{number}", node="n1") for number in range(3)]
    rig.sync(*pods, make_node("n1"), make_node("n2"))
    rig.measure({pod.name: 1.3 for pod in pods}, {"n1": 3.9, "n2": 0.1})
    rig.fail(pods[0])
    await rig.run_cycle()
    assert rig.executor.under_way
    made.clear()
    await NextProblem(rig.controller.parts).refresh()
    assert made == []
