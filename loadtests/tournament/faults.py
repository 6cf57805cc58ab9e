"""What happens to a modelled cluster by itself: rollouts, lost nodes, broken apps, bursts of failed probes."""

from __future__ import annotations

import random
from functools import partial

from loadtests.tournament.cluster import STEP, FluidCluster
from loadtests.tournament.instance import BrokenModel, LossModel, RolloutModel
from loadtests.tournament.state import AppState, NodeState

NODE_NOTICED = 40.0
"""Seconds until a node that does not answer is not Ready (node-monitor-grace-period)."""
_DAY = 86_400.0


class Faults:
    def __init__(self, cluster: FluidCluster) -> None:
        self._cluster, self._clock = cluster, cluster.clock
        self._random = random.Random(f"faults/{cluster.instance.scenario.name}/{cluster.instance.seed}")

    def schedule(self) -> None:
        """All that the instance says, on the cluster's clock."""
        instance = self._cluster.instance
        for rollout in instance.rollouts:
            self._clock.at(rollout.at, partial(self._roll_out, rollout))
        for loss in instance.losses:
            self._clock.at(loss.at, partial(self._lose, loss))
            self._clock.at(loss.until, partial(self._recover, loss))
        for broken in instance.broken:
            self._clock.at(broken.at, partial(self._break, broken))
        if instance.noise.bursts_per_day > 0:
            self._next_burst()

    def _roll_out(self, rollout: RolloutModel) -> None:
        state = self._cluster.apps[rollout.app]
        state.revision += 1
        state.generation += 1
        self._cluster.listener.owner_changed(state)
        self._roll(state)

    def _roll(self, state: AppState) -> None:
        """One new pod at a time, as with maxSurge 1 and maxUnavailable 0."""
        cluster = self._cluster
        pods = cluster.active(state)
        old = [pod for pod in pods if pod.revision < state.revision]
        new = [pod for pod in pods if pod.revision == state.revision]
        if not old:
            return
        if len(pods) > state.replicas and all(cluster.ready(pod) for pod in new):
            cluster.retire(old[0])
        elif len(pods) <= state.replicas and len(new) < state.replicas:
            cluster.create(state)
        cluster.listener.owner_changed(state)
        self._clock.after(2 * STEP, partial(self._roll, state))

    def _lose(self, loss: LossModel) -> None:
        node = self._cluster.nodes[loss.node]
        self._cluster.set_reachable(node, reachable=False)
        self._clock.after(NODE_NOTICED, partial(self._notice, node))
        self._clock.after(NODE_NOTICED + loss.eviction_after, partial(self._evict_all, node))

    def _notice(self, node: NodeState) -> None:
        if node.reachable:
            return
        node.ready = False
        self._cluster.listener.node_changed(node)
        for pod in self._cluster.pods_on(node):
            if self._cluster.ready(pod):
                self._cluster.set_ready(pod, ready=False)

    def _evict_all(self, node: NodeState) -> None:
        if node.ready:
            return
        for pod in self._cluster.pods_on(node):
            if not pod.app.pinned:
                self._cluster.evict(pod.uid, by_policy=False)

    def _recover(self, loss: LossModel) -> None:
        node = self._cluster.nodes[loss.node]
        node.ready = True
        self._cluster.set_reachable(node, reachable=True)
        self._cluster.listener.node_changed(node)

    def _break(self, broken: BrokenModel) -> None:
        for pod in self._cluster.active(self._cluster.apps[broken.app]):
            self._cluster.slots.bug[pod.slot] = broken.failing

    def _next_burst(self) -> None:
        per_day = self._cluster.instance.noise.bursts_per_day
        self._clock.after(self._random.expovariate(per_day / _DAY), self._burst)

    def _burst(self) -> None:
        noise, bursts = self._cluster.instance.noise, self._cluster.bursts
        node = self._random.randrange(len(self._cluster.nodes))
        bursts[node] = noise.burst_share
        self._clock.after(noise.burst_seconds, partial(self._end_burst, node))
        self._next_burst()

    def _end_burst(self, node: int) -> None:
        self._cluster.bursts.pop(node, None)
