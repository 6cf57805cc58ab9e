"""Our Events: repeats are counted, the API is not flooded, and no Event delays a cycle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from reactor.errors import Forbidden, Unreachable
from reactor.record import events as module
from reactor.record.events import EventQueue, pod_event
from tests.support.clock import NOW, VirtualClock
from tests.support.cluster import make_pod
from tests.support.writer import FakeAnnouncer

EVENT = pod_event(make_pod(), "RematchWaits", "cooldown: moved 3 s ago")


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
async def events(announcer: FakeAnnouncer, clock: VirtualClock, losses: Losses) -> AsyncIterator[EventQueue]:
    events = EventQueue(announcer, clock, losses)
    writing = asyncio.create_task(events.run())
    yield events
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)


async def test_an_event_is_written_on_its_object(
    events: EventQueue, announcer: FakeAnnouncer, clock: VirtualClock
) -> None:
    events.add(EVENT)
    await clock.settle()

    assert [(event.name, event.reason, count) for event, count in announcer.events.values()] == [
        ("web-1", "RematchWaits", 1)
    ]


async def test_the_same_event_is_counted_and_written_again_after_a_while(
    events: EventQueue, announcer: FakeAnnouncer, clock: VirtualClock
) -> None:
    for _ in range(10):
        events.add(EVENT)
        await clock.settle()
    assert [count for _, count in announcer.events.values()] == [1]

    clock.set(NOW + 300)
    events.add(EVENT)
    await clock.settle()

    assert [count for _, count in announcer.events.values()] == [11]


async def test_an_event_that_expired_is_created_again(
    events: EventQueue, announcer: FakeAnnouncer, clock: VirtualClock
) -> None:
    events.add(EVENT)
    await clock.settle()
    announcer.events.clear()

    clock.set(NOW + 300)
    events.add(EVENT)
    await clock.settle()

    assert len(announcer.events) == 1


async def test_another_message_is_another_event(
    events: EventQueue, announcer: FakeAnnouncer, clock: VirtualClock
) -> None:
    events.add(EVENT)
    events.add(pod_event(make_pod("db-1"), "RematchWaits", "cooldown: moved 3 s ago"))
    await clock.settle()

    assert len(announcer.events) == 2


@pytest.mark.parametrize("error", [Forbidden("events", status=403), Unreachable("no answer")])
async def test_an_event_that_the_api_does_not_take_is_counted_and_the_next_one_is_written(
    events: EventQueue, announcer: FakeAnnouncer, clock: VirtualClock, losses: Losses, error: Exception
) -> None:
    assert isinstance(error, Forbidden | Unreachable)
    announcer.trouble.append(error)
    events.add(EVENT)
    await clock.settle()
    assert events.problem == str(error)
    events.add(pod_event(make_pod("db-1"), "Moved", "there"))
    await clock.settle()

    assert losses.number == 1
    assert announcer.said == ["Moved: there"]
    assert events.problem == ""


async def test_too_many_at_once_are_dropped_counted_and_written_later(
    announcer: FakeAnnouncer, clock: VirtualClock, losses: Losses
) -> None:
    events = EventQueue(announcer, clock, losses)
    for number in range(module.QUEUE_LENGTH + 5):
        events.add(pod_event(make_pod(f"web-{number}"), "Moved", "there"))
    assert losses.number == 5

    writing = asyncio.create_task(events.run())
    await clock.settle()
    last = pod_event(make_pod(f"web-{module.QUEUE_LENGTH + 4}"), "Moved", "there")
    events.add(last)
    await clock.settle()
    writing.cancel()

    assert last in [event for event, _ in announcer.events.values()]


async def test_remembered_events_are_bounded(
    announcer: FakeAnnouncer, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REMEMBERED_EVENTS", 3)
    events = EventQueue(announcer, clock)

    for number in range(10):
        events.add(pod_event(make_pod(f"web-{number}"), "Moved", "there"))

    assert len(events._written) == 3


async def test_without_a_writer_nothing_is_written(clock: VirtualClock) -> None:
    events = EventQueue(None, clock)

    events.add(EVENT)

    await asyncio.wait_for(events.run(), 1)
    assert events._queue.empty()
