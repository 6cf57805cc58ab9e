"""A node's CPU as a processor-sharing queue: pure, exact, and driven by whatever clock the caller has.

Pods share the cores by weight (cgroup cpu.shares follow the requests), the runnable jobs of a pod share what the pod
gets. Sharing is max-min fair: no pod gets more than its runnable jobs can use (one core each) or its limit allows, and
what it leaves goes to the others. Limits are fluid, without the kernel's 100 ms quota periods.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_SAME = 1e-9
"""CPU-seconds below which a job counts as done; far below a microsecond of work."""


class Demand(NamedTuple):
    weight: float
    cap: float
    """The most it could use, in cores."""


class Completion(NamedTuple):
    job: int
    at: float


class CpuUsage(NamedTuple):
    seconds: float
    """CPU-seconds used so far."""
    throttled: float
    """Seconds in which the pod's limit, not the node, held it back."""


def fair_shares(cores: float, demands: Sequence[Demand]) -> list[float]:
    """Weighted max-min fair rates: fill up the easiest to satisfy first, the rest share what is left by weight."""
    shares = [0.0] * len(demands)
    left, weights = cores, sum(demand.weight for demand in demands)
    for index in sorted(range(len(demands)), key=lambda i: demands[i].cap / demands[i].weight):
        weight, cap = demands[index]
        shares[index] = min(cap, max(left, 0.0) * weight / weights) if weights > 0 else 0.0
        left -= shares[index]
        weights -= weight
    return shares


@dataclass(slots=True)
class _Pod:
    """`progress` is what every job present since it was zero has received: all jobs of a pod run equally fast."""

    weight: float
    limit: float
    progress: float = 0.0
    rate: float = 0.0
    used: float = 0.0
    throttled: float = 0.0
    finishing: list[tuple[float, int]] = field(default_factory=list)
    jobs: set[int] = field(default_factory=set)

    @property
    def speed(self) -> float:
        return self.rate / len(self.jobs)


class NodeCpu:
    """Times are seconds on the caller's scale and never go back."""

    def __init__(self, cores: float, now: float = 0.0) -> None:
        if cores <= 0:
            raise ValueError(f"cores must be positive, got {cores}")
        self.cores = cores
        self._now = now
        self._pods: dict[str, _Pod] = {}
        self._active: dict[str, _Pod] = {}
        self._owner: dict[int, str] = {}
        self._next_job = 0
        self._due: tuple[float, str] | None = None
        self.used = 0.0
        """CPU-seconds of all pods, those that are gone included, as of the last `advance`."""

    def add_pod(self, key: str, weight: float, limit: float = float("inf")) -> None:
        if key in self._pods:
            raise ValueError(f"pod {key} is already on this node")
        if weight <= 0 or limit <= 0:
            raise ValueError(f"pod {key}: weight and limit must be positive, got {weight} and {limit}")
        self._pods[key] = _Pod(weight, limit)

    def remove_pod(self, key: str, now: float) -> list[Completion]:
        """Its unfinished jobs are gone with it; what others finished until now is handed back."""
        done = self.advance(now)
        for job in self._pods.pop(key).jobs:
            del self._owner[job]
        self._active.pop(key, None)
        self._share()
        return done

    def submit(self, pod: str, work: float, now: float) -> tuple[int, list[Completion]]:
        """The new job's number, and what was finished until now."""
        if work <= 0:
            raise ValueError(f"work must be positive, got {work}")
        done = self.advance(now)
        self._next_job += 1
        job, owner = self._next_job, self._pods[pod]
        owner.jobs.add(job)
        heapq.heappush(owner.finishing, (owner.progress + work, job))
        self._owner[job] = pod
        self._active[pod] = owner
        self._share()
        return job, done

    def cancel(self, job: int, now: float) -> list[Completion]:
        """Cancelling what is finished already is no error: the two can cross."""
        done = self.advance(now)
        if (key := self._owner.pop(job, None)) is not None:
            self._leave(key, job)
            self._share()
        return done

    def advance(self, now: float) -> list[Completion]:
        done: list[Completion] = []
        while self._due is not None and self._due[0] <= now:
            at, key = self._due
            self._run_until(at)
            pod = self._active[key]
            pod.progress = max(pod.progress, pod.finishing[0][0])
            done.extend(Completion(job, at) for job in self._finished())
            self._share()
        self._run_until(now)
        return done

    def next_event(self) -> float | None:
        """When the next job will be done if nothing changes before."""
        return None if self._due is None else self._due[0]

    def usage(self, pod: str) -> CpuUsage:
        """As of the last `advance`."""
        return CpuUsage(self._pods[pod].used, self._pods[pod].throttled)

    def rate(self, pod: str) -> float:
        """Cores the pod gets at this moment."""
        return self._pods[pod].rate

    def _run_until(self, now: float) -> None:
        elapsed = now - self._now
        if elapsed <= 0:
            return
        self._now = now
        for pod in self._active.values():
            pod.progress += pod.speed * elapsed
            pod.used += pod.rate * elapsed
            self.used += pod.rate * elapsed
            if pod.limit < len(pod.jobs) and pod.rate >= pod.limit:
                pod.throttled += elapsed

    def _finished(self) -> list[int]:
        jobs: list[int] = []
        for key, pod in list(self._active.items()):
            while pod.finishing and pod.finishing[0][0] <= pod.progress + _SAME:
                job = pod.finishing[0][1]
                jobs.append(job)
                del self._owner[job]
                self._leave(key, job)
        return jobs

    def _leave(self, key: str, job: int) -> None:
        """Take the job off its pod and clear the heap's top of jobs that have left."""
        pod = self._pods[key]
        pod.jobs.discard(job)
        while pod.finishing and pod.finishing[0][1] not in pod.jobs:
            heapq.heappop(pod.finishing)
        if not pod.jobs:
            pod.progress, pod.rate = 0.0, 0.0
            del self._active[key]

    def _share(self) -> None:
        pods = self._active
        demands = [Demand(pod.weight, min(len(pod.jobs), pod.limit)) for pod in pods.values()]
        self._due = None
        for (key, pod), rate in zip(pods.items(), fair_shares(self.cores, demands), strict=True):
            pod.rate = rate
            at = self._now + max(pod.finishing[0][0] - pod.progress, 0.0) / pod.speed
            if self._due is None or at < self._due[0]:
                self._due = (at, key)
