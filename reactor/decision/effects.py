"""Did a move help? What did not help is remembered for the workload and the node, and fades."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from reactor.state.moves import Move, MoveState
from reactor.state.snapshot import Snapshot

HALF_LIFE = 3600.0
"""A move that did not help counts half after this time."""
AVOIDED = 0.5
"""From this weight on, a node is not tried again for the workload: for an hour after one failure."""
FORGOTTEN = 0.25


@dataclass(frozen=True, slots=True)
class Trial:
    """A replacement of an unhappy pod: it is judged when it is unhappy again, or at `judged_at` when it is not."""

    namespace: str
    workload: str
    judged_at: float


@dataclass(frozen=True, slots=True)
class Verdict:
    trial: Trial
    node: str
    helped: bool
    at: float


@dataclass(frozen=True, slots=True)
class Failure:
    """The weight of the moves of one workload to one node that did not help, as of `at`."""

    weight: float
    at: float

    def now(self, now: float) -> float:
        return self.weight * math.exp2(-max(0.0, now - self.at) / HALF_LIFE)


@dataclass(frozen=True, slots=True)
class Effects:
    trials: Mapping[str, Trial] = field(default_factory=dict)
    """By the UID of the replacement."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """By workload and node, see `_key`."""

    def after_moves(self, moves: Iterable[Move], judged_after: float) -> Effects:
        """Moves of unhappy pods that ended with a Ready replacement are on trial."""
        trials = {
            move.replacement: Trial(move.pod.namespace, move.workload, move.ended + judged_after)
            for move in moves
            if move.state is MoveState.DONE and move.unhappy and move.replacement is not None and move.ended is not None
        }
        return replace(self, trials={**self.trials, **trials}) if trials else self

    def judge(self, snapshot: Snapshot) -> tuple[Effects, tuple[Verdict, ...]]:
        """The verdicts that are possible now. A replacement that is gone before its time is not judged."""
        now, verdicts, trials = snapshot.at, [], {}
        for uid, trial in self.trials.items():
            pod, happiness = snapshot.cluster.pods.get(uid), snapshot.happiness.get(uid)
            if pod is None or pod.node is None:
                continue
            unhappy = happiness is not None and happiness.unhappy
            if unhappy or now >= trial.judged_at:
                verdicts.append(Verdict(trial, pod.node, not unhappy, now))
            else:
                trials[uid] = trial
        failures = {key: failure for key, failure in self.failures.items() if failure.now(now) >= FORGOTTEN}
        for verdict in verdicts:
            _count(failures, verdict)
        return Effects(trials, failures), tuple(verdicts)

    def useless(self, now: float) -> dict[str, tuple[str, ...]]:
        """By workload: the nodes that did not help it, and are not tried again until that has faded."""
        found: dict[str, tuple[str, ...]] = {}
        for key in sorted(key for key, failure in self.failures.items() if failure.now(now) >= AVOIDED):
            workload, _, node = key.rpartition(" ")
            found[workload] = (*found.get(workload, ()), node)
        return found


def _key(workload: str, node: str) -> str:
    """No name of a node or workload has a space."""
    return f"{workload} {node}"


def _count(failures: dict[str, Failure], verdict: Verdict) -> None:
    """A move that helped clears the node for the workload."""
    key = _key(verdict.trial.workload, verdict.node)
    before = failures.pop(key, None)
    if not verdict.helped:
        failures[key] = Failure(1.0 + (before.now(verdict.at) if before else 0.0), verdict.at)
