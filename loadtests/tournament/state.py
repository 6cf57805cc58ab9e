"""What a model of a cluster is made of: pods, owners, nodes, moves, and the samples that are taken of it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from loadtests.tournament.instance import AppModel, NodeModel
from loadtests.tournament.queues import Flags, Floats, Ints


@dataclass(slots=True)
class FluidPod:
    uid: str
    app: AppModel
    slot: int
    created: float
    revision: int
    node: str | None = None
    deleting: bool = False
    restarts: int = 0
    started: float | None = None
    terminated: float | None = None
    ready_since: float | None = None
    cost: int = 0
    life: int = 0
    """Which container this is: what belongs to an earlier one is void."""
    moved: bool = False
    """It ends because a policy moves it."""
    surge: float | None = None
    """When it was made as one pod more than wanted."""


@dataclass(slots=True)
class MoveRecord:
    lineage: int
    app: str
    source: str
    began: float
    target: str = ""
    ended: float = float("inf")


@dataclass(slots=True)
class AppState:
    model: AppModel
    index: int
    replicas: int
    generation: int = 1
    revision: int = 1
    number: int = 0
    vacated: deque[int] = field(default_factory=deque)
    """Lineages that wait for a pod."""


@dataclass(slots=True)
class NodeState:
    model: NodeModel
    index: int
    reachable: bool = True
    ready: bool = True
    pressure: bool = False


class Listener(Protocol):
    """Is told what a kubelet or an API server would report."""

    def pod_changed(self, pod: FluidPod) -> None: ...

    def pod_gone(self, pod: FluidPod) -> None: ...

    def owner_changed(self, app: AppState) -> None: ...

    def node_changed(self, node: NodeState) -> None: ...

    def probe_failed(self, pod: FluidPod) -> None: ...

    def container_killed(self, pod: FluidPod) -> None: ...


class NoListener:
    """For policies that are not told anything."""

    def pod_changed(self, pod: FluidPod) -> None:
        del pod

    def pod_gone(self, pod: FluidPod) -> None:
        del pod

    def owner_changed(self, app: AppState) -> None:
        del app

    def node_changed(self, node: NodeState) -> None:
        del node

    def probe_failed(self, pod: FluidPod) -> None:
        del pod

    def container_killed(self, pod: FluidPod) -> None:
        del pod


@dataclass(frozen=True, slots=True)
class Sample:
    """For the measures, at one moment. By lineage and by app."""

    time: float
    node: Ints
    unhappy: Flags
    sent: Floats
    """Since the start, by app; as the others."""
    answered: Floats
    lost_to_moves: Floats
    demand: Floats
    """Cores that the pods of each node want."""
