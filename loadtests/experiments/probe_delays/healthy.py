"""Moves of healthy pods, whose probes fail by chance only, in single failures and in bursts.

Nothing is decided between failures, so time is skipped: only where several failures come close together are the
counts, the happiness and the decision worked out, by the controller's own code. Each such moment is judged at several
loads of the node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predictors.peaks import SigmaOrPercentile
from reactor.cluster.records import Container, Node, NodeUsageSample, Owner, Pod, PodUsageSample, Probe, Workload
from reactor.cluster.view import ClusterView
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.decide import Unhappy, decide_for
from reactor.decision.eligibility import Eligibility
from reactor.settings.model import Settings
from reactor.signals.container_probes import ContainerProbes
from reactor.signals.measurements import MetricsSource
from reactor.signals.probe_counts import ProbeCounts, Span
from reactor.signals.usage import UsageHistory
from reactor.state.happiness import PodHappiness, half_life
from reactor.state.load_changes import LoadChange
from reactor.state.moves import ActiveMoves
from reactor.state.snapshot import Snapshot

NOW = 1_700_000_000.0
DAY = 86_400.0
IN_BURSTS = 0.2
"""Share of the failures that come in bursts: a pause of the runtime, a slow dependency."""
BURST_LENGTH = 3.0
"""Mean number of failures in a row in a burst; the lengths are geometric."""
APART = 64
"""Failures that are so many probes apart have nothing to do with each other: eight half-lives."""
LOADS: Mapping[float, float] = {0.5: 0.75, 0.8: 0.20, 0.9: 0.05}
"""Loads of the nodes, and the share of the healthy pods that are there."""
BUSY = (0.95, 1.0)
"""Loads at which no cluster is healthy, by the curve."""
LOAD_NOISE = 0.02
"""Standard deviation of one measurement of a node's load, as a share of its capacity."""
LOAD_CHANGES_EVERY = 1800.0
"""Mean seconds between two jumps of a node's load to where it is now."""
STEP, STEPS = 15.0, 60
"""The usage history of a node."""
CORES, NEIGHBOURS = 4.0, 8


@dataclass(frozen=True, slots=True)
class Needless:
    """Needless moves by load, as if all pods were on nodes of this load."""

    pod_days: float
    moves: Mapping[float, int]

    def per_100_pod_days(self, load: float) -> float:
        return 100 * self.moves[load] / self.pod_days

    @property
    def in_the_mixture(self) -> float:
        """Per 100 pod-days, in a cluster with the loads of LOADS."""
        return sum(share * self.per_100_pod_days(load) for load, share in LOADS.items())


def needless_moves(
    period: float, rate: float, pod_days: int, seed: int, settings: Settings, loads: Sequence[float] = tuple(LOADS)
) -> Needless:
    draw = np.random.default_rng([seed, int(period), int(rate * 1e6)])
    judge = _Judge(period, settings, loads)
    moves = dict.fromkeys(loads, 0)
    for _ in range(pod_days):
        for load in _moved_in_a_day(judge, period, rate, draw):
            moves[load] += 1
    return Needless(pod_days, moves)


def failures_of_a_day(period: float, rate: float, draw: np.random.Generator) -> npt.NDArray[np.int64]:
    """The numbers of the probes that fail, in order; a share of `rate` of all."""
    probes = int(DAY / period)
    single = draw.integers(0, probes, draw.binomial(probes, rate * (1 - IN_BURSTS)))
    begins = draw.integers(0, probes, draw.binomial(probes, rate * IN_BURSTS / BURST_LENGTH))
    bursts = [begin + np.arange(length) for begin, length in
              zip(begins, draw.geometric(1 / BURST_LENGTH, len(begins)), strict=True)]  # fmt: skip
    return np.unique(np.concatenate([single, *bursts]))


def _moved_in_a_day(judge: _Judge, period: float, rate: float, draw: np.random.Generator) -> Iterator[float]:
    failures = failures_of_a_day(period, rate, draw)
    groups = np.split(failures, np.flatnonzero(np.diff(failures) > APART) + 1)
    seen = 0
    for group in groups:
        if len(group) >= 2:
            yield from judge.moves_in(group, seen, draw)
        seen += len(group)


class _Judge:
    """Decides about one pod by the controller's code."""

    def __init__(self, period: float, settings: Settings, loads: Sequence[float]) -> None:
        """Settings with which a single replica may be moved: here it is about the decision."""
        self._period, self._settings = period, settings
        self._half_life = half_life(settings.happiness).of(period)
        self._pod = _pod("web-0", "web", period)
        neighbours = [_pod(f"other-{number}", f"other-{number}", period) for number in range(NEIGHBOURS)]
        self._snapshots = {load: _snapshot([self._pod, *neighbours], load) for load in loads}

    def moves_in(self, group: npt.NDArray[np.int64], seen: int, draw: np.random.Generator) -> Iterator[float]:
        """The loads at which the pod is moved for this group of failures; `seen` failed earlier that day."""
        probes = ContainerProbes.first_seen(self._pod.containers[0], NOW - 2 * DAY, NOW - DAY, probing=True)
        probes.by_events = float(seen)
        left = dict(self._snapshots)
        noise, jump = draw.normal(0.0, LOAD_NOISE, STEPS), draw.exponential(LOAD_CHANGES_EVERY)
        for probe in group.tolist():
            now = NOW - DAY + (probe + 1) * self._period
            probes.advance(now, self._half_life)
            probes.fail(1.0, Span(now, now), now, self._half_life)
            counts = ProbeCounts(probes.total_successes, probes.total_failures)
            happiness = PodHappiness.of(self._pod, None, counts, self._settings.happiness)
            if not happiness.unhappy:
                continue
            for load in sorted(left, reverse=True):
                change = _load_change(load, noise, jump, now)
                if not self._moves(left[load], happiness, probes, change, now):
                    break  # less load makes the place no more likely
                del left[load]
                yield load

    def _moves(
        self, snapshot: Snapshot, happiness: PodHappiness, probes: ContainerProbes, change: LoadChange, now: float
    ) -> bool:
        uid = self._pod.uid
        at_this_time = replace(
            snapshot,
            at=now,
            happiness={uid: happiness},
            recent_probes={uid: (probes.recent_probes(),)},
            load_changes={self._pod.node or "": change},
        )
        return isinstance(decide_for(self._pod, Eligibility(at_this_time, Cooldowns(), self._settings)), Unhappy)


def _load_change(load: float, noise: npt.NDArray[np.float64], jump: float, now: float) -> LoadChange:
    """The load jumped by a fifth of the capacity to what it is now, `jump` seconds ago."""
    times: npt.NDArray[np.float64] = now - STEP * np.arange(STEPS, dtype=np.float64)[::-1]
    return LoadChange.of_loads(times, np.where(times < now - jump, load - 0.2, load) + noise)


def _pod(name: str, app: str, period: float) -> Pod:
    return Pod(
        uid=name,
        namespace="shop",
        name=name,
        resource_version="",
        labels={"app": app},
        annotations={},
        created=NOW - 2 * DAY,
        scheduler_name="rematch",
        node="n1",
        owner=Owner("ReplicaSet", app, f"uid-{app}"),
        phase="Running",
        ready=True,
        requests={"cpu": 0.1, "memory": 1e8},
        containers=(Container("srv", Probe(period), 0, NOW - 2 * DAY),),
    )


def _snapshot(pods: list[Pod], load: float) -> Snapshot:
    room = {"cpu": CORES, "memory": 8e9, "pods": 110.0}
    nodes = [Node(name, name, "", {}, allocatable=room, capacity=room, ready=True) for name in ("n1", "n2")]
    owners = [
        Workload("ReplicaSet", f"uid-{pod.labels['app']}", "shop", pod.labels["app"], "", replicas=1) for pod in pods
    ]
    view = ClusterView(
        at=NOW,
        nodes={node.name: node for node in nodes},
        pods={pod.uid: pod for pod in pods},
        workloads={owner.uid: owner for owner in owners},
    )
    usage = UsageHistory(120.0, 900.0, SigmaOrPercentile())
    for node in nodes:
        usage.observe_node(node.name)
    for pod in pods:
        usage.observe_pod(pod)
    samples = [PodUsageSample("shop", pod.name, 0.1, 1e8, NOW) for pod in pods]
    usage.record_pods(samples, MetricsSource.PROMETHEUS, NOW)
    usage.record_nodes(
        [NodeUsageSample("n1", load * CORES, 1e9, NOW), NodeUsageSample("n2", 0.5, 1e9, NOW)],
        MetricsSource.PROMETHEUS,
        NOW,
    )
    return Snapshot(NOW, view, usage.freeze(NOW), {}, ActiveMoves())
