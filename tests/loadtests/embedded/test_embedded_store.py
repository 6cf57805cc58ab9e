"""The store: one growing version, history that can be replayed and undone, and its end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.embedded import ApiError, Change, ChangeType, ObjectStore
from loadtests.embedded.resources import CONFIGMAPS, NODES

Step = tuple[str, str, int]


def _obj(name: str, value: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}, "data": {"v": str(value)}}


def _apply(store: ObjectStore, step: Step) -> None:
    action, name, value = step
    exists = store.find(CONFIGMAPS, "ns", name) is not None
    if action == "delete" and exists:
        store.remove(CONFIGMAPS, "ns", name)
    elif action == "put":
        (store.replace if exists else store.create)(CONFIGMAPS, _obj(name, value))


def _state(store: ObjectStore, version: int | None = None) -> dict[str, tuple[str, str]]:
    return {
        stored.key[1]: (stored.obj["data"]["v"], stored.obj["metadata"]["resourceVersion"])
        for stored in store.snapshot(CONFIGMAPS, version)
    }


steps = st.lists(
    st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from("abcd"), st.integers(0, 99)), max_size=40
)


@given(steps)
def test_every_past_version_can_be_seen_again(actions: list[Step]) -> None:
    store, seen = ObjectStore(), {}
    for action in actions:
        _apply(store, action)
        seen[store.version] = _state(store)
    for version, state in seen.items():
        assert _state(store, version) == state


@given(steps, st.integers(0, 40))
def test_the_changes_since_any_version_lead_to_the_present(actions: list[Step], start: int) -> None:
    store, base, version = ObjectStore(), {}, 1
    for index, action in enumerate(actions):
        if index == start:
            base, version = {stored.key: stored for stored in store.all(CONFIGMAPS)}, store.version
        _apply(store, action)
    if start >= len(actions):
        base, version = {stored.key: stored for stored in store.all(CONFIGMAPS)}, store.version
    for change in store.log(CONFIGMAPS).since(version):
        if change.type is ChangeType.DELETED:
            del base[change.new.key]
        else:
            base[change.new.key] = change.new
    assert base == {stored.key: stored for stored in store.all(CONFIGMAPS)}


def test_versions_are_global_and_only_grow() -> None:
    store = ObjectStore()
    first = store.create(CONFIGMAPS, _obj("a", 1)).version
    second = store.create(NODES, {"metadata": {"name": "n"}}).version
    third = store.remove(CONFIGMAPS, "ns", "a").version
    assert first < second < third == store.version


def test_history_is_bounded_and_says_so() -> None:
    store = ObjectStore(history=10)
    for value in range(50):
        _apply(store, ("put", "a", value))
    assert 10 <= len(store.log(CONFIGMAPS).since(store.log(CONFIGMAPS).forgotten)) < 20
    with pytest.raises(ApiError) as refused:
        store.log(CONFIGMAPS).since(2)
    assert (refused.value.code, refused.value.reason) == (410, "Expired")
    with pytest.raises(ApiError):
        store.snapshot(CONFIGMAPS, 2)


def test_compacting_forgets_everything_but_the_present() -> None:
    store = ObjectStore()
    _apply(store, ("put", "a", 1))
    before = store.version
    _apply(store, ("put", "a", 2))
    store.compact()
    with pytest.raises(ApiError):
        store.log(CONFIGMAPS).since(before)
    assert store.log(CONFIGMAPS).since(store.version) == []


def test_an_object_is_encoded_once_with_its_kind_first() -> None:
    stored = ObjectStore().create(CONFIGMAPS, _obj("a", 1))
    assert stored.raw is stored.raw
    assert stored.raw.startswith(b'{"apiVersion":"v1","kind":"ConfigMap",')


def test_observers_hear_of_every_change() -> None:
    store, heard = ObjectStore(), list[Change]()
    store.observe(heard.append)
    _apply(store, ("put", "a", 1))
    _apply(store, ("put", "a", 2))
    _apply(store, ("delete", "a", 0))
    assert [change.type.value for change in heard] == ["ADDED", "MODIFIED", "DELETED"]
    assert heard[1].old is heard[0].new


async def test_waiting_for_the_next_change() -> None:
    store = ObjectStore()
    waiting = store.log(CONFIGMAPS).next_change()
    assert waiting is store.log(CONFIGMAPS).next_change()
    _apply(store, ("put", "a", 1))
    await asyncio.wait_for(waiting, 1)
    assert not store.log(CONFIGMAPS).next_change().done()
