"""The journal on an API server: compare-and-swap, takeover, lost answers, other versions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from loadtests.embedded.plain_client import PlainClient
from reactor.execution.cluster_journal import MAX_MOVE_BYTES, MAX_STATE_BYTES, STATE_OBJECT, ClusterJournal
from reactor.execution.journal import JournalError, SavedState
from reactor.state.moves import Move, MoveState
from tests.contracts.conftest import Connect
from tests.support.cluster import make_pod as cluster_pod
from tests.support.lossy import Loss
from tests.support.moves import make_move

GROUP = "apis/rematch.io/v1alpha1"


def _move(name: str = "web", **fields: Any) -> Move:
    return make_move(cluster_pod(name, node="n1"), "n2", **fields)


async def _object(api: PlainClient, move: Move) -> dict[str, Any]:
    return (await api.get(api.here("moves", move.id, group=GROUP))).body


async def test_what_is_written_is_loaded_by_the_next_process(api: PlainClient, connect: Connect) -> None:
    journal = ClusterJournal(await connect(), api.namespace, "a")
    assert (await journal.load()).moves == ()
    move = _move()
    await journal.write(move)
    evicted = replace(move, state=MoveState.EVICTED, evicted=12.5, retry_after=3.0)
    await journal.write(evicted)
    await journal.write_state(SavedState({"brake": "{}", "cooldowns": '{"a": 1}'}))
    shown = (await _object(api, move))["spec"]
    assert [shown[key] for key in ("pod", "from", "to", "strategy", "state", "reason")] == [
        "shop/web",
        "n1",
        "n2",
        "evict",
        "evicted",
        "because",
    ]
    loaded = await ClusterJournal(await connect(), api.namespace, "b").load()
    assert loaded.moves == (evicted,)
    assert loaded.state.documents == {"brake": "{}", "cooldowns": '{"a": 1}'}


async def test_a_field_that_is_unset_again_is_unset_for_the_reader(api: PlainClient, connect: Connect) -> None:
    journal = ClusterJournal(await connect(), api.namespace, "a")
    await journal.load()
    await journal.write(_move(retry_after=5.0, replacement="uid-1"))
    await journal.write(_move())
    assert (await journal.load()).moves == (_move(),)


async def test_an_ended_move_leaves_nothing(api: PlainClient, connect: Connect) -> None:
    journal = ClusterJournal(await connect(), api.namespace, "a")
    await journal.load()
    await journal.write(_move())
    await journal.remove(_move().id)
    await journal.remove(_move().id)
    assert (await api.get(api.here("moves", group=GROUP))).names == []


async def test_an_entry_that_somebody_deleted_is_written_again(api: PlainClient, connect: Connect) -> None:
    """Else its move would be stuck half-way, and forgotten by the next leader."""
    past, present = [ClusterJournal(await connect(), api.namespace, name) for name in ("a", "b")]
    await past.load()
    await past.write(_move())
    await api.delete(api.here("moves", _move().id, group=GROUP))
    evicted = replace(_move(), state=MoveState.EVICTED)
    await past.write(evicted)
    assert (await present.load()).moves == (evicted,)
    await api.delete(api.here("moves", _move().id, group=GROUP))
    with pytest.raises(JournalError, match="taken over by another leader"):
        await past.write(evicted)


async def test_a_state_that_somebody_deleted_is_written_again(api: PlainClient, connect: Connect) -> None:
    past, present = [ClusterJournal(await connect(), api.namespace, name) for name in ("a", "b")]
    await past.load()
    await past.write_state(SavedState({"brake": "{}"}))
    await api.delete(api.here("configmaps", STATE_OBJECT))
    await past.write_state(SavedState({"brake": "1"}))
    assert (await present.load()).state.documents == {"brake": "1"}
    with pytest.raises(JournalError, match="taken over by another leader"):
        await past.write_state(SavedState({"brake": "2"}))


async def test_a_past_leader_can_write_and_remove_nothing(api: PlainClient, connect: Connect) -> None:
    past, present = [ClusterJournal(await connect(), api.namespace, name) for name in ("a", "b")]
    await past.load()
    await past.write(_move())
    loaded = await present.load()
    with pytest.raises(JournalError, match="taken over by another leader"):
        await past.write(_move(state="evicted"))
    with pytest.raises(JournalError, match="taken over by another leader"):
        await past.remove(_move().id)
    with pytest.raises(JournalError, match="taken over by another leader"):
        await past.write_state(SavedState({"brake": "released"}))
    await present.write(replace(loaded.moves[0], state=MoveState.BOUND))
    assert (await _object(api, _move()))["spec"]["state"] == "bound"


@pytest.mark.parametrize("loss", [Loss.REQUEST, Loss.ANSWER])
async def test_a_lost_answer_is_read_back(api: PlainClient, connect: Connect, loss: Loss) -> None:
    connection = await connect()
    journal = ClusterJournal(connection, api.namespace, "a")
    await journal.load()
    for move in (_move(), _move(state="evicted", evicted=1.0)):
        connection.losses = [loss]
        await journal.write(move)
        assert (await _object(api, move))["spec"]["state"] == move.state
    connection.losses = [loss]
    await journal.write_state(SavedState({"brake": "set"}))
    state = await api.get(api.here("configmaps", "rematch-state"))
    assert state.body["data"]["brake"] == "set"
    connection.losses = [loss]
    await journal.remove(_move().id)
    assert (await api.get(api.here("moves", group=GROUP))).names == []


async def test_a_server_that_does_not_answer_lets_nothing_be_announced(api: PlainClient, connect: Connect) -> None:
    connection = await connect()
    journal = ClusterJournal(connection, api.namespace, "a")
    await journal.load()
    connection.losses = [Loss.REQUEST] * 9
    with pytest.raises(JournalError, match="could not be written"):
        await journal.write(_move())
    connection.losses = []
    connection.cut = True
    with pytest.raises(JournalError, match="reading it back"):
        await journal.write(_move())
    connection.cut = False
    await journal.write(_move())
    assert (await journal.load()).moves == (_move(),)


async def test_nothing_is_written_before_the_journal_was_loaded(api: PlainClient, connect: Connect) -> None:
    journal = ClusterJournal(await connect(), api.namespace, "a")
    with pytest.raises(JournalError, match="not loaded"):
        await journal.write(_move())
    with pytest.raises(JournalError, match="not loaded"):
        await journal.write_state(SavedState())


async def test_what_is_too_large_is_refused(api: PlainClient, connect: Connect) -> None:
    journal = ClusterJournal(await connect(), api.namespace, "a")
    await journal.load()
    with pytest.raises(JournalError, match=f"more than {MAX_MOVE_BYTES}"):
        await journal.write(_move(outcome="x" * MAX_MOVE_BYTES))
    with pytest.raises(JournalError, match=f"more than {MAX_STATE_BYTES}"):
        await journal.write_state(SavedState({"cooldowns": "x" * MAX_STATE_BYTES}))


async def test_what_a_later_version_adds_is_ignored_and_kept(api: PlainClient, connect: Connect) -> None:
    journal = ClusterJournal(await connect(), api.namespace, "a")
    await journal.load()
    await journal.write(_move())
    path = api.here("moves", _move().id, group=GROUP)
    await api.patch(path, {"spec": {"version": 2, "move": {"novelty": {"a": 1}}}})
    header = msgspec.json.encode({"version": 2, "readableBy": 1, "epoch": 7, "novelty": 1}).decode()
    await api.patch(api.here("configmaps", "rematch-state"), {"data": {"journal": header, "novelty": "{}"}})
    older = ClusterJournal(await connect(), api.namespace, "b")
    loaded = await older.load()
    assert loaded.moves == (_move(),)
    assert loaded.state.documents == {"novelty": "{}"}
    await older.write(_move(state="late"))
    assert (await _object(api, _move()))["spec"]["move"]["novelty"] == {"a": 1}


async def test_an_incompatible_version_is_left_alone(api: PlainClient, connect: Connect) -> None:
    journal = ClusterJournal(await connect(), api.namespace, "a")
    await journal.load()
    await journal.write(_move())
    await api.patch(api.here("moves", _move().id, group=GROUP), {"spec": {"version": 9, "readableBy": 8}})
    before = await api.get(api.here("moves", group=GROUP)), await api.get(api.here("configmaps", "rematch-state"))
    with pytest.raises(JournalError, match=r"version 9 .* left alone; .*kubectl delete moves.rematch.io move-web"):
        await ClusterJournal(await connect(), api.namespace, "b").load()
    after = await api.get(api.here("moves", group=GROUP)), await api.get(api.here("configmaps", "rematch-state"))
    assert after[0].body["items"] == before[0].body["items"]
    assert after[1].body == before[1].body


async def test_a_state_that_nobody_can_read_is_left_alone(api: PlainClient, connect: Connect) -> None:
    header = msgspec.json.encode({"version": 9, "readableBy": 8}).decode()
    state = {"metadata": {"name": "rematch-state"}, "data": {"journal": header}}
    await api.post(api.here("configmaps"), state)
    with pytest.raises(JournalError, match="version 9, this controller reads 1: it is left alone"):
        await ClusterJournal(await connect(), api.namespace, "b").load()
    assert (await api.get(api.here("configmaps", "rematch-state"))).body["data"] == {"journal": header}


async def test_a_namespace_that_is_missing_is_named_with_its_command(api: PlainClient, connect: Connect) -> None:
    with pytest.raises(JournalError, match="kubectl create namespace no-such"):
        await ClusterJournal(await connect(), "no-such", "a").load()


async def test_an_entry_that_a_past_leader_creates_late_is_found(api: PlainClient, connect: Connect) -> None:
    past, present = [ClusterJournal(await connect(), api.namespace, name) for name in ("a", "b")]
    await past.load()
    await present.load()
    await present.write(_move("ours"))
    await past.write(_move("late"))
    assert await present.take_strays() == (_move("late"),)
    assert await present.take_strays() == ()
    with pytest.raises(JournalError, match="taken over by another leader"):
        await past.write(_move("late", state="evicted"))
    await present.remove(_move("late").id)
    assert (await api.get(api.here("moves", group=GROUP))).names == [_move("ours").id]


async def test_an_entry_of_ours_that_comes_after_its_end_is_removed(api: PlainClient, connect: Connect) -> None:
    """Its request was held back on its way and repeated; nobody else would ever remove it."""
    journal = ClusterJournal(await connect(), api.namespace, "a")
    await journal.load()
    await journal.write(_move())
    late = await _object(api, _move())
    await journal.remove(_move().id)
    fresh = {"name": late["metadata"]["name"], "namespace": api.namespace}
    await api.post(api.here("moves", group=GROUP), {**late, "metadata": fresh})
    await journal.write(_move("other"))
    assert await journal.take_strays() == ()
    assert (await api.get(api.here("moves", group=GROUP))).names == [_move("other").id]
