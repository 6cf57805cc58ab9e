"""The interface of an experiment's world; simulated time and real nodes implement it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from loadtests.experiments.stable.design import KUBE_SCHEDULER, Arm, Pace
from loadtests.workloads.placement import App, Placement
from loadtests.workloads.samples import RequestSample
from reactor.settings.model import Settings


@dataclass(frozen=True, slots=True)
class MoveSpan:
    """A move as its app's users saw it: from the eviction to the Ready replacement, in seconds since the epoch."""

    app: str
    began: float
    ended: float
    """Infinite while it is under way."""


@dataclass(frozen=True, slots=True)
class Machine:
    """How the machine itself was during a step, in cores; a simulation has none."""

    outside_idle: float
    """Unused part of the CPU that is not promised to the nodes."""
    outside: float
    """Cores that are not promised to the nodes."""
    late_ms: float
    """How late the load tool was on average."""
    unsent: float
    """Share of the requests that it did not get round to send."""
    delay_ms: float | None
    """How long a process of the lab that wanted to run had to wait for a CPU, on average; None: it never ran."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One step: every request, and what the controller and the nodes did meanwhile."""

    samples: Sequence[RequestSample]
    """Their starts are seconds after `began`."""
    began: float
    """When the first request was sent, in seconds since the epoch."""
    rematches: int = 0
    moves: int = 0
    """That ended in this step."""
    spans: Sequence[MoveSpan] = ()
    """Of the run's moves so far: one that began or ended in another step costs requests of this one, too."""
    left_out: Sequence[str] = ()
    """The apps that a plan of this step left without a node, each once."""
    without_node: int = 0
    """Pods that had no node when the step was over."""
    restarts: int = 0
    cpu: Mapping[str, float] = field(default_factory=dict)
    """Cores used by the pods of each node, on average."""
    memory: Mapping[str, float] = field(default_factory=dict)
    """Bytes held by the pods of each node at the end."""
    app_cpu: Mapping[str, float] = field(default_factory=dict)
    """Cores used by each app, on average; empty: not measured."""
    app_memory: Mapping[str, float] = field(default_factory=dict)
    settled: Placement = field(default_factory=dict)
    """The last placement of the run so far in which nothing was being moved and every app had a node."""
    machine: Machine | None = None


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """One run: the apps, where they start, and the controller's settings (None: no controller)."""

    seed: int
    apps: tuple[App, ...]
    placement: Placement
    pace: Pace
    settings: Settings | None
    arm: Arm = KUBE_SCHEDULER
    """With a revision, its controller is run with settings of its own."""


Collect = Callable[[], Awaitable[Observation]]
"""Waits for the last answers of a step."""


class Session(Protocol):
    async def step(self, rate: float, seconds: float) -> Collect:
        """Load every app with `rate` requests per second. The next step may begin before the answers are collected:
        a pause between the steps would let overrun nodes recover."""
        ...

    async def placement(self) -> Placement: ...


class Driver(Protocol):
    @property
    def world(self) -> str:
        """`simulated` or `real`."""
        ...

    @property
    def versions(self) -> Mapping[str, str]: ...

    async def default_placement(self, seed: int) -> Placement:
        """Where the scheduler of this world puts the apps, whatever their work."""
        ...

    async def capacity(self, apps: tuple[App, ...]) -> float:
        """Requests per second and app that fill all nodes when the work is spread evenly, as measured."""
        ...

    def session(self, spec: SessionSpec) -> AbstractAsyncContextManager[Session]: ...
