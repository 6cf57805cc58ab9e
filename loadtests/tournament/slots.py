"""The numbers of all pods in parallel arrays, a slot per pod, so that a step of the model is a few array operations."""

from __future__ import annotations

import numpy as np

from loadtests.tournament.queues import Outcome, Pods

_FLOATS = (
    "weight",
    "limit",
    "work",
    "workers",
    "backlog",
    "idle",
    "memory",
    "leak",
    "started",
    "bug",
    "next_live",
    "next_ready",
    "next_noise",
    "live_timeout",
    "ready_timeout",
    "successes",
    "failures",
    "recent_successes",
    "recent_failures",
    "used",
    "throttled",
    "wait",
    "refused",
    "rate",
    "answered",
    "failed",
    "wanted",
    "share",
)
_INTS = ("node", "app", "live_failed", "ready_failed", "lineage")
_FLAGS = ("listens", "ready", "routed", "probed")


class Slots:
    """`listens`: its container runs and takes requests. `routed`: requests are sent to it. `lineage`: whose place it
    has; a pod that replaces another one takes over its lineage, -1 is a surge's pod before that. `live_timeout`: when a
    probe that gets no answer is over; infinite without one."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._free: list[int] = []
        self.size = 0
        self.weight = self.limit = self.work = self.workers = self.backlog = self.idle = np.zeros(0)
        self.memory = self.leak = self.started = self.bug = np.zeros(0)
        self.next_live = self.next_ready = self.next_noise = self.live_timeout = self.ready_timeout = np.zeros(0)
        self.successes = self.failures = self.recent_successes = self.recent_failures = np.zeros(0)
        self.used = self.throttled = self.wait = self.refused = self.rate = np.zeros(0)
        self.answered = self.failed = self.wanted = self.share = np.zeros(0)
        self.node = self.app = self.live_failed = self.ready_failed = self.lineage = np.zeros(0, dtype=np.int64)
        self.listens = self.ready = self.routed = self.probed = np.zeros(0, dtype=np.bool_)
        self.queue = np.zeros((0, columns))
        self._grow(64)

    def pods(self) -> Pods:
        """What `serve` reads. The arrays are these here."""
        return Pods(*(getattr(self, name) for name in Pods._fields))

    def outcome(self) -> Outcome:
        """What `serve` writes."""
        return Outcome(*(getattr(self, name) for name in Outcome._fields))

    def take(self) -> int:
        """A slot with zeros in it."""
        if not self._free:
            self._grow(2 * self.size)
        slot = self._free.pop()
        for name in (*_FLOATS, *_INTS, *_FLAGS):
            getattr(self, name)[slot] = 0
        self.queue[slot] = 0.0
        self.node[slot] = self.lineage[slot] = -1
        self.live_timeout[slot] = self.ready_timeout[slot] = np.inf
        return slot

    def give_back(self, slot: int) -> None:
        self.listens[slot] = self.ready[slot] = self.routed[slot] = self.probed[slot] = False
        self.queue[slot] = 0.0
        self.node[slot] = self.lineage[slot] = -1
        self._free.append(slot)

    def _grow(self, size: int) -> None:
        more = size - self.size
        for names, kind in ((_FLOATS, np.float64), (_INTS, np.int64), (_FLAGS, np.bool_)):
            for name in names:
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(more, dtype=kind)]))
        self.queue = np.concatenate([self.queue, np.zeros((more, self._columns))])
        self.node[self.size :] = self.lineage[self.size :] = -1
        self.live_timeout[self.size :] = self.ready_timeout[self.size :] = np.inf
        self._free += range(size - 1, self.size - 1, -1)
        self.size = size
