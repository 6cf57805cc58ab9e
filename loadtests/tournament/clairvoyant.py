"""A policy that knows the load to come, as a bound for what placement can do.

Every few seconds it looks ahead: where a node will be overloaded within `AHEAD` seconds, it searches for the move that
takes away most of the overload of the next `HORIZON` seconds, and makes it by a surge before the load comes. It moves
again while that helps. It is a good search, not a proven optimum.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from loadtests.tournament.cluster import FluidCluster
from loadtests.tournament.queues import Floats, Ints
from loadtests.tournament.state import FluidPod

EVERY = 5.0
AHEAD = 30.0
HORIZON = 900.0
SAMPLES = 30
FULL = 0.97
"""Share of a node's cores that it fills; a queue of requests forms before 1."""
LEAST = 0.02
"""Core-seconds per second of the horizon that a move has to save to be worth its trouble."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the running pods will want, and where they are."""

    pods: list[FluidPod]
    at: Ints
    wanted: Floats
    """(pods, times), in cores."""
    others: Floats
    """(nodes, times): what pods want that nobody may move."""
    room: Floats
    """Cores by node."""


class Clairvoyant:
    def __init__(self, cluster: FluidCluster, moves: int | None = None) -> None:
        """`moves`: how many it may make; None is no limit."""
        self._cluster, self._left = cluster, moves
        self._due = 0.0
        self.cpu_seconds = 0.0

    async def act(self) -> None:
        if self._cluster.clock.time < self._due or self._left == 0:
            return
        self._due = self._cluster.clock.time + EVERY
        began = time.process_time()
        self._plan()
        self.cpu_seconds += time.process_time() - began

    def _plan(self) -> None:
        outlook = self._look()
        tried: set[int] = set()
        while self._left != 0:
            load = _loads(outlook)
            soon = max(1, round(SAMPLES * AHEAD / HORIZON))
            if not np.any(load[:, :soon] > outlook.room[:, None] * FULL):
                return
            if load[:, :soon].sum(axis=0).max() > FULL * outlook.room.sum():
                return  # full is full
            found = self._best(outlook, load, tried)
            if found is None:
                return
            pod, node = found
            tried.add(pod)
            if not self._cluster.surge_move(outlook.pods[pod].uid, self._cluster.instance.nodes[node].name):
                continue
            outlook.at[pod] = node
            if self._left is not None:
                self._left -= 1

    def _look(self) -> Outlook:
        cluster, now = self._cluster, self._cluster.clock.time
        instance = cluster.instance
        times = now + np.linspace(0.0, min(HORIZON, max(instance.seconds - now, 1.0)), SAMPLES)
        factors = np.stack([instance.load.at(time) for time in times])
        pods = [pod for pod in cluster.running() if cluster.ready(pod)]
        wanted = np.array([self._need(pod, times) * factors[:, cluster.apps[pod.app.name].index] for pod in pods])
        others = np.zeros((len(instance.nodes), SAMPLES))
        for pod in cluster.pods.values():
            if pod.app.pinned and pod.node is not None:
                state = cluster.apps[pod.app.name]
                others[cluster.nodes[pod.node].index] += state.model.rate * factors[:, state.index]
        room = np.array([node.model.spec.cores if cluster.usable(node) else 0.0 for node in cluster.nodes.values()])
        at = np.array([cluster.nodes[pod.node or ""].index for pod in pods], dtype=np.int64)
        return Outlook(pods, at, wanted.reshape(len(pods), SAMPLES), others, room)

    def _need(self, pod: FluidPod, times: Floats) -> Floats:
        """Cores at the factor 1; a rollout to come counts from its time on."""
        need = np.full(len(times), pod.app.need)
        for rollout in self._cluster.instance.rollouts:
            if rollout.app == pod.app.name:
                need = np.where(times >= rollout.at, need * rollout.factor, need)
        least: Floats = np.minimum(need, pod.app.limit)
        return least

    def _best(self, outlook: Outlook, load: Floats, tried: set[int]) -> tuple[int, int] | None:
        """The pod and node whose move saves most overload, weighed against nothing else."""
        over = _overload(load, outlook.room)
        hot = set(np.flatnonzero(over.sum(axis=1) > 0).tolist())
        best, least = None, LEAST * SAMPLES
        for index, pod in enumerate(outlook.pods):
            source = int(outlook.at[index])
            if source not in hot or index in tried:
                continue
            without = _overload(load[source] - outlook.wanted[index], outlook.room[source])
            saved = over[source].sum() - without.sum()
            for node in self._allowed(pod, outlook):
                more = _overload(load[node] + outlook.wanted[index], outlook.room[node]).sum() - over[node].sum()
                gain = saved - more - 1e-3 * float((load[node] / max(outlook.room[node], 1e-9)).mean())
                if gain > least:
                    best, least = (index, node), gain
        return best

    def _allowed(self, pod: FluidPod, outlook: Outlook) -> list[int]:
        """Nodes that take the pod by its rules. Requests are far below what nodes have, and are not looked at."""
        instance, app = self._cluster.instance, pod.app
        siblings = [each for each in outlook.pods if each.app.name == app.name and each is not pod]
        taken = {each.node for each in siblings} if app.apart else set()
        found = []
        for index, node in enumerate(instance.nodes):
            tolerated = all(
                any(each.key == taint.key and each.value == taint.value for each in app.rules.tolerations)
                for taint in node.taints
            )
            zone = not app.spread_zones or node.zone == self._cluster.nodes[pod.node or ""].model.zone
            if index != self._cluster.nodes[pod.node or ""].index and tolerated and zone and node.name not in taken:
                found.append(index)
        return [index for index in found if outlook.room[index] > 0]


def _loads(outlook: Outlook) -> Floats:
    load = outlook.others.copy()
    np.add.at(load, outlook.at, outlook.wanted)
    return load


def _overload(load: Floats, room: Floats) -> Floats:
    over: Floats = np.maximum(load - FULL * (room[:, None] if load.ndim == 2 else room), 0.0)
    return over
