"""The cluster's writing side with scripted answers."""

from __future__ import annotations

from typing import cast

from reactor.cluster.kinds import ObjectName
from reactor.cluster.records import Pod
from reactor.cluster.writes import Announcement, Binding, BindingAnswer, ClusterWriter, Eviction, EvictionAnswer
from reactor.errors import ClusterError, NotFound


class FakeWriter:
    """Records what was asked for. Whoever has no scripted answer (by pod name) is evicted and bound."""

    def __init__(self) -> None:
        self.evicted: list[str] = []
        self.bound: list[tuple[str, str]] = []
        self.evictions: dict[str, EvictionAnswer] = {}
        self.bindings: dict[str, BindingAnswer] = {}
        self.unschedulable: list[tuple[str, str, str]] = []
        self.trouble_with_conditions = ""

    @property
    def writer(self) -> ClusterWriter:
        return cast(ClusterWriter, self)

    async def evict(self, pod: Pod) -> EvictionAnswer:
        self.evicted.append(pod.name)
        return self.evictions.get(pod.name, EvictionAnswer(Eviction.ACCEPTED))

    async def mark_unschedulable(self, pod: Pod, reason: str, message: str) -> str:
        self.unschedulable.append((pod.name, reason, message))
        return self.trouble_with_conditions

    async def bind(self, pod: Pod, node: str) -> BindingAnswer:
        self.bound.append((pod.name, node))
        return self.bindings.get(pod.name, BindingAnswer(Binding.BOUND))


class FakeAnnouncer:
    """Our Events, by name; `trouble` makes the API refuse the next ones."""

    def __init__(self) -> None:
        self.events: dict[str, tuple[Announcement, int]] = {}
        self.trouble: list[ClusterError] = []

    @property
    def said(self) -> list[str]:
        return [f"{note.reason}: {note.message}" for note, _ in self.events.values()]

    async def create_event(self, announcement: Announcement) -> ObjectName:
        if self.trouble:
            raise self.trouble.pop()
        name = ObjectName(announcement.namespace, f"event-{len(self.events)}")
        self.events[name.name] = (announcement, 1)
        return name

    async def count_event(self, event: ObjectName, count: int) -> None:
        if event.name not in self.events:
            raise NotFound(event.name, status=404)
        self.events[event.name] = (self.events[event.name][0], count)
