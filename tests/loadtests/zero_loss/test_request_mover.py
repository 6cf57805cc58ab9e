"""Moves by requests: which pods are asked for, and what the answers count as."""

from __future__ import annotations

from typing import Any

from loadtests.zero_loss.design import APPS
from loadtests.zero_loss.pods import AppPods
from loadtests.zero_loss.request_mover import RequestMover
from tests.support.clock import VirtualClock

Json = dict[str, Any]
NODES = ("node1", "node2", "node3")
NAMESPACE = "zero-loss"


class Script:
    """An API server with one pod on node1 per replica, and a controller that moves what `refused` does not name."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.pods = {f"{moved.app.name}-{number}": "node1" for moved in APPS for number in range(moved.app.replicas)}
        self.asked: list[Json] = []
        self.results: list[Json] = []

    async def get(self, path: str) -> Json:
        if path.endswith("/pods"):
            return {"items": [_pod(name, node) for name, node in self.pods.items()]}
        if path.endswith("/moves"):
            return {"items": [_move(each) for each in self.asked]}
        return {**_request(), "status": {"state": "done", "moves": self.results}}

    async def create(self, _path: str, body: Json) -> Json:
        self.asked = body["spec"]["moves"]
        for move in self.asked:
            name = move["pod"].rpartition("/")[2]
            if name in self.refused:
                self.results.append(
                    {"pod": move["pod"], "to": move["to"], "state": "refused", "message": "noFreshMetrics: ..."}
                )
                continue
            del self.pods[name]
            self.pods[f"{name}-new"] = move["to"]
            self.results.append({"pod": move["pod"], "to": move["to"], "state": "done"})
        return _request()


def _request() -> Json:
    return {"metadata": {"name": "zero-loss-1", "uid": "u"}, "spec": {"action": "apply"}}


def _pod(name: str, node: str) -> Json:
    ready = {"type": "Ready", "status": "True"}
    return {
        "metadata": {"name": name, "uid": name},
        "spec": {"nodeName": node},
        "status": {"conditions": [ready]},
    }


def _move(asked: Json) -> Json:
    return {"spec": {"pod": asked["pod"], "strategy": "releaseSurge", "state": "retiring"}}


def mover(script: Script) -> RequestMover:
    return RequestMover(AppPods(script, NAMESPACE, APPS), NODES, VirtualClock())  # type: ignore[arg-type]


async def test_each_pod_goes_to_the_next_node_and_no_more_than_wanted_are_asked_for() -> None:
    script = Script()
    moved = mover(script)
    landed = await moved.round({"drains-1": 5, "exits-2": 1})

    assert [(move["pod"], move["to"]) for move in script.asked] == [
        (f"{NAMESPACE}/drains-1-0", "node2"),
        (f"{NAMESPACE}/exits-2-0", "node2"),
    ]
    assert [(move.app, move.source, move.target, move.node, move.strategy) for move in landed] == [
        ("drains-1", "node1", "node2", "node2", "releaseSurge"),
        ("exits-2", "node1", "node2", "node2", "releaseSurge"),
    ]
    assert all(move.retiring is not None for move in landed)
    assert moved.problems == []


async def test_a_pod_that_is_not_measured_yet_is_no_move_and_no_problem() -> None:
    moved = mover(Script("exits-2-1"))
    landed = await moved.round({"exits-2": 2})

    assert len(landed) == 1
    assert moved.problems == []
