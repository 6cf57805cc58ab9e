"""Hints on an API server: compare-and-swap, lost answers, takeover."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from loadtests.embedded.plain_client import PlainClient
from reactor.clock import SystemClock
from reactor.cluster import hints
from reactor.cluster.hints import HINTS_PATH, OBJECT_NAME, Hint, HintRefused, HintWriter
from reactor.cluster.steering_policy import CANARY_MOVE
from reactor.errors import Conflict, Unreachable
from reactor.execution.steering import HintSteering
from reactor.settings.model import Mode
from reactor.state.moves import Move
from tests.contracts.conftest import Connect
from tests.support.cluster import make_owner, make_pod
from tests.support.lossy import Loss, LossyConnection
from tests.support.moves import make_move

HOSTNAMES = {"n1": "ip-10-0-0-1", "n2": "ip-10-0-0-2"}


@pytest.fixture(autouse=True)
async def _no_hints(api: PlainClient) -> AsyncIterator[None]:
    await api.delete(f"{HINTS_PATH}/{OBJECT_NAME}")
    yield
    await api.delete(f"{HINTS_PATH}/{OBJECT_NAME}")


def move_of(app: str, target: str = "n2", **owner: Any) -> Move:
    return make_move(make_pod(f"{app}-1", owner=make_owner(app, **owner)), target)


def steering(connection: LossyConnection) -> HintSteering:
    return HintSteering(HintWriter(connection, SystemClock()), HOSTNAMES.get, lambda: Mode.ACT)


async def written(api: PlainClient) -> dict[str, Any]:
    found: dict[str, Any] = (await api.get(f"{HINTS_PATH}/{OBJECT_NAME}")).body["spec"]["hints"]
    return found


async def test_hints_are_keyed_by_the_owner_and_name_the_hostname_label(api: PlainClient, connect: Connect) -> None:
    steers = steering(await connect())
    web, db = move_of("web"), move_of("db", kind="StatefulSet")
    await steers.hint(web)
    await steers.hint(db, hard=True)
    assert await written(api) == {
        "uid-ReplicaSet-web": {"move": "move-web-1", "hostname": "ip-10-0-0-2", "hard": False, "avoid": "ip-10-0-0-1"},
        "uid-StatefulSet-db": {
            "move": "move-db-1",
            "hostname": "ip-10-0-0-2",
            "hard": True,
            "pod": "db-1",
            "avoid": "ip-10-0-0-1",
        },
    }
    await steers.withdraw([web.id, "gone-already"])
    assert set(await written(api)) == {"uid-StatefulSet-db"}


async def test_the_second_try_is_hard_and_the_next_one_soft_again(api: PlainClient, connect: Connect) -> None:
    steers = steering(await connect())
    for hard in (False, True, False):
        await steers.hint(move_of("web"), hard=hard)
        assert (await written(api))["uid-ReplicaSet-web"]["hard"] is hard


async def test_an_owner_has_one_hint_at_a_time_and_a_node_needs_its_label(api: PlainClient, connect: Connect) -> None:
    connection = await connect()
    steers = steering(connection)
    await steers.hint(move_of("web"))
    other = make_move(make_pod("web-2", owner=make_owner("web")), "n2")
    with pytest.raises(HintRefused, match="ReplicaSet web has a hint of the move move-web-1 already"):
        await steers.hint(other)
    with pytest.raises(HintRefused, match="n3 has no label kubernetes"):
        await steers.hint(move_of("db", "n3"))
    assert len(connection.writes) == 1


async def test_writers_at_the_same_time_lose_no_hint(api: PlainClient, connect: Connect) -> None:
    one, two = steering(await connect()), steering(await connect())
    await asyncio.gather(*(each.hint(move_of(f"{name}")) for each, name in ((one, "a"), (two, "b"), (one, "c"))))
    assert {hint["move"] for hint in (await written(api)).values()} == {"move-a-1", "move-b-1", "move-c-1"}


async def test_moves_that_begin_together_write_their_hints_without_a_conflict(
    api: PlainClient, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conflict costs a pause, and a move that finds none but conflicts is given up."""
    monkeypatch.setattr(hints, "_ATTEMPTS", 1)
    connection = await connect()
    steers = steering(connection)
    await steers.hint(move_of("first"))
    await asyncio.gather(*(steers.hint(move_of(f"app{number}")) for number in range(10)))
    assert len(await written(api)) == len(connection.writes) == 11


@pytest.mark.parametrize(("loss", "writes"), [(Loss.ANSWER, 1), (Loss.REQUEST, 1)])
async def test_a_lost_answer_is_looked_up_and_a_lost_request_repeated(
    api: PlainClient, connect: Connect, loss: Loss, writes: int
) -> None:
    connection = await connect()
    connection.losses = [loss]
    await steering(connection).hint(move_of("web"))
    assert len(connection.writes) == writes
    assert set(await written(api)) == {"uid-ReplicaSet-web"}


async def test_a_server_that_does_not_answer_is_an_error_after_a_few_attempts(connect: Connect) -> None:
    connection = await connect()
    connection.losses = [Loss.REQUEST] * 9
    with pytest.raises(Unreachable):
        await steering(connection).hint(move_of("web"))
    assert len(connection.losses) == 4


async def test_who_takes_over_removes_the_hints_of_others_and_late_writes_conflict(
    api: PlainClient, connect: Connect
) -> None:
    past, present = await connect(), steering(await connect())
    await steering(past).hint(move_of("old"))
    await present.hint(move_of("kept"))
    await HintWriter(past, SystemClock()).change(lambda _: {"uid-canary": Hint(f"{CANARY_MOVE}1", "none")})
    before = (await api.get(f"{HINTS_PATH}/{OBJECT_NAME}")).body["metadata"]["resourceVersion"]
    await present.withdraw_others(["move-kept-1"])
    assert set(await written(api)) == {"uid-ReplicaSet-kept", "uid-canary"}
    late = {"metadata": {"resourceVersion": before}, "spec": {"hints": {"uid-late": {"move": "m", "hostname": "h"}}}}
    answer = await api.patch(f"{HINTS_PATH}/{OBJECT_NAME}", late)
    assert answer.status == 409


async def test_taking_over_changes_the_object_even_without_hints(api: PlainClient, connect: Connect) -> None:
    present = steering(await connect())
    await present.withdraw_others([])
    first = (await api.get(f"{HINTS_PATH}/{OBJECT_NAME}")).body["spec"]["writer"]
    await present.withdraw_others([])
    assert (await api.get(f"{HINTS_PATH}/{OBJECT_NAME}")).body["spec"]["writer"] != first


async def test_the_number_of_hints_is_bounded(
    api: PlainClient, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "MAX_HINTS", 2)
    steers = steering(await connect())
    await steers.hint(move_of("a"))
    await steers.hint(move_of("b"))
    with pytest.raises(Conflict, match="has 2 hints, and at most 2 are allowed"):
        await steers.hint(move_of("c"))
    await steers.withdraw(["move-a-1"])
    await steers.hint(move_of("c"))
    assert len(await written(api)) == 2
