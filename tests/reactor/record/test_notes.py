"""Our Events: repeats are counted, the API is not flooded, and nothing of it can hold up a cycle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from reactor.errors import Forbidden, Unreachable
from reactor.record import notes as module
from reactor.record.announce import about_pod
from reactor.record.notes import Notes
from tests.support.clock import NOW, VirtualClock
from tests.support.cluster import make_pod
from tests.support.writer import FakeAnnouncer

NEWS = about_pod(make_pod(), "RematchWaits", "cooldown: moved 3 s ago")


class Losses:
    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> None:
        self.number += 1


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def announcer() -> FakeAnnouncer:
    return FakeAnnouncer()


@pytest.fixture
def losses() -> Losses:
    return Losses()


@pytest.fixture
async def notes(announcer: FakeAnnouncer, clock: VirtualClock, losses: Losses) -> AsyncIterator[Notes]:
    notes = Notes(announcer, clock, losses)
    writing = asyncio.create_task(notes.run())
    yield notes
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)


async def test_news_becomes_an_event_on_its_object(notes: Notes, announcer: FakeAnnouncer, clock: VirtualClock) -> None:
    notes.add(NEWS)
    await clock.settle()

    assert [(note.name, note.reason, count) for note, count in announcer.events.values()] == [
        ("web-1", "RematchWaits", 1)
    ]


async def test_the_same_news_is_counted_and_told_again_after_a_while(
    notes: Notes, announcer: FakeAnnouncer, clock: VirtualClock
) -> None:
    for _ in range(10):
        notes.add(NEWS)
        await clock.settle()
    assert [count for _, count in announcer.events.values()] == [1]

    clock.set(NOW + 300)
    notes.add(NEWS)
    await clock.settle()

    assert [count for _, count in announcer.events.values()] == [11]


async def test_an_event_that_expired_is_made_anew(notes: Notes, announcer: FakeAnnouncer, clock: VirtualClock) -> None:
    notes.add(NEWS)
    await clock.settle()
    announcer.events.clear()

    clock.set(NOW + 300)
    notes.add(NEWS)
    await clock.settle()

    assert len(announcer.events) == 1


async def test_other_news_is_another_event(notes: Notes, announcer: FakeAnnouncer, clock: VirtualClock) -> None:
    notes.add(NEWS)
    notes.add(about_pod(make_pod("db-1"), "RematchWaits", "cooldown: moved 3 s ago"))
    await clock.settle()

    assert len(announcer.events) == 2


@pytest.mark.parametrize("error", [Forbidden("events", status=403), Unreachable("no answer")])
async def test_an_event_that_the_api_does_not_take_is_counted_and_the_next_one_is_written(
    notes: Notes, announcer: FakeAnnouncer, clock: VirtualClock, losses: Losses, error: Exception
) -> None:
    assert isinstance(error, Forbidden | Unreachable)
    announcer.trouble.append(error)
    notes.add(NEWS)
    await clock.settle()
    assert notes.problem == str(error)
    notes.add(about_pod(make_pod("db-1"), "Moved", "there"))
    await clock.settle()

    assert losses.number == 1
    assert announcer.said == ["Moved: there"]
    assert notes.problem == ""


async def test_too_many_at_once_are_dropped_counted_and_told_later(
    announcer: FakeAnnouncer, clock: VirtualClock, losses: Losses
) -> None:
    notes = Notes(announcer, clock, losses)
    for number in range(module.WAITING + 5):
        notes.add(about_pod(make_pod(f"web-{number}"), "Moved", "there"))
    assert losses.number == 5

    writing = asyncio.create_task(notes.run())
    await clock.settle()
    last = about_pod(make_pod(f"web-{module.WAITING + 4}"), "Moved", "there")
    notes.add(last)
    await clock.settle()
    writing.cancel()

    assert last in [note for note, _ in announcer.events.values()]


async def test_what_is_remembered_is_bounded(
    announcer: FakeAnnouncer, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 3)
    notes = Notes(announcer, clock)

    for number in range(10):
        notes.add(about_pod(make_pod(f"web-{number}"), "Moved", "there"))

    assert len(notes._said) == 3


async def test_without_a_writer_nothing_is_said(clock: VirtualClock) -> None:
    notes = Notes(None, clock)

    notes.add(NEWS)

    await asyncio.wait_for(notes.run(), 1)
    assert notes._queue.empty()
