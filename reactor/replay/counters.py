"""The kubelets' counters of liveness probes, and what of them the controller has read.

A counter is read in the minutes in which a probe fails, and in the minute before the first of them, so that failures
belong to their minute. In between the controller counts probes by time, as it does between two readings of a live
cluster. It gets the readings when it decides: most failures need no decision, and are forgotten before the next one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container

import numpy as np

from reactor.cluster.records import Pod
from reactor.replay.clock import MINUTE, ReplayClock
from reactor.replay.given import Floats
from reactor.signals.measurements import ProbeCounter
from reactor.signals.probe_counts import spread
from reactor.state.live_state import NEGLIGIBLE_FAILURES, State


class Counters:
    def __init__(self, state: State, clock: ReplayClock, half_life: Floats) -> None:
        """`half_life`: of the probes of each replica, in seconds."""
        self._state, self._clock = state, clock
        self._decay = 0.5 ** (MINUTE / half_life)
        self._weight = np.array([spread(1.0, 0.0, MINUTE, each) for each in half_life.tolist()])
        """Of a probe of the minute that just ended."""
        number = len(half_life)
        self.good, self.bad = np.zeros(number), np.zeros(number)
        """Decayed as the controller does it, to see who may be unhappy."""
        self._successes, self._failures = np.zeros(number), np.zeros(number)
        self._pods: dict[int, ProbeCounter] = {}
        """By replica, as it was when the pod began."""
        self._unread: defaultdict[int, list[ProbeCounter]] = defaultdict(list)
        self._read_at = np.zeros(number)

    def begin(self, replica: int, pod: Pod) -> None:
        """Of a new pod. Without a liveness probe there is nothing to read."""
        for counts in (self.good, self.bad, self._successes, self._failures):
            counts[replica] = 0.0
        self.end(replica)
        probed = next((each for each in pod.containers if each.liveness is not None), None)
        if probed is not None:
            now = self._clock.time
            first = ProbeCounter(pod.namespace, pod.name, probed.name, 0.0, 0.0, now, pod.uid)
            self._pods[replica], self._read_at[replica] = first, now
            self._state.observe_counters([first])

    def end(self, replica: int) -> None:
        self._pods.pop(replica, None)
        self._unread.pop(replica, None)

    def pass_quietly(self, probes: Floats) -> None:
        """Minutes in which no probe fails, a row each."""
        for each in probes:
            self.good = self.good * self._decay + self._weight * each
        self.bad = self.bad * self._decay ** len(probes)
        self._successes += probes.sum(axis=0)

    def count(self, probes: Floats, failures: Floats) -> None:
        """The minute that ends now."""
        now = self._clock.time
        failing = [replica for replica in np.flatnonzero(failures).tolist() if replica in self._pods]
        for replica in failing:
            if self._read_at[replica] < now - MINUTE:
                self._read(replica, now - MINUTE)
        passed = probes - failures
        self.good = self.good * self._decay + self._weight * passed
        self.bad = self.bad * self._decay + self._weight * failures
        self._successes += passed
        self._failures += failures
        for replica in failing:
            self._read(replica, now)

    def _read(self, replica: int, at: float) -> None:
        first = self._pods[replica]
        counted = float(self._successes[replica]), float(self._failures[replica])
        self._read_at[replica] = at
        self._unread[replica].append(ProbeCounter(first.namespace, first.pod, first.container, *counted, at, first.uid))

    def show(self, only: Container[int] | None = None) -> None:
        """The controller gets what was read of failing pods, as of when it was read. `only`: of these replicas."""
        known = self._state.failing
        failing = [at for at in self._unread if self.bad[at] >= NEGLIGIBLE_FAILURES or self._pods[at].uid in known]
        replicas = failing if only is None else [at for at in failing if at in only]
        now = self._clock.time
        for replica in replicas:
            for counter in self._unread.pop(replica):
                self._clock.time = counter.at
                self._state.observe_counters([counter])
        self._clock.time = now
