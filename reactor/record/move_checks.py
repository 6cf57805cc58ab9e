"""Checks moves afterwards: which share of its probes a moved pod was expected to fail on its new node, and which it
failed until the move was judged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from reactor.decision.causes import node_use
from reactor.decision.effects import Trial, Verdict
from reactor.state.moves import Move, MoveState
from reactor.state.snapshot import Snapshot
from storage.rows import MoveCheckRow

CHECKS_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class CheckedMoves:
    """Of the moves that were judged: the mean shares of probes that were expected to fail and did."""

    moves: int
    helped: int
    expected: float
    observed: float


@dataclass(frozen=True, slots=True)
class JudgedMove:
    uid: str
    """Of the replacement."""
    pod: str
    node: str
    helped: bool
    observed: float
    expected: float | None
    """None where the new node was not measured."""
    plan_id: str

    def __str__(self) -> str:
        share = f"{'helped' if self.helped else 'did not help'}: {self.observed:.1%} of probes failed on {self.node}"
        return share if self.expected is None else f"{share}, {self.expected:.1%} expected (plan {self.plan_id})"


class MoveChecks:
    def __init__(self, store: Callable[[MoveCheckRow], None] = lambda _row: None) -> None:
        self._store = store
        self._open: dict[str, MoveCheckRow] = {}
        self._judged: deque[MoveCheckRow] = deque(maxlen=CHECKS_KEPT)

    def restore(self, rows: Iterable[MoveCheckRow]) -> None:
        """Newest first."""
        for row in reversed(list(rows)):
            if row.observed is None:
                self._open[row.replacement_uid] = row
            else:
                self._judged.append(row)

    def expect(self, move: Move, snapshot: Snapshot) -> None:
        """Of a move that ended with a Ready replacement of an unhappy pod: only those are judged."""
        pod = snapshot.cluster.pods.get(move.replacement or "")
        node = snapshot.cluster.nodes.get(pod.node or "") if pod is not None else None
        if move.state is not MoveState.DONE or not move.unhappy or pod is None or node is None:
            return
        use = node_use(node, snapshot)
        if use is not None:
            expected = snapshot.failure_curve.probability(max(use.values()))
            row = MoveCheckRow(move.id, move.plan_id, pod.uid, node.name, snapshot.at, expected)
            self._open[pod.uid] = row
            self._store(row)

    def judge(
        self, trials: Mapping[str, Trial], verdicts: Iterable[Verdict], snapshot: Snapshot
    ) -> tuple[JudgedMove, ...]:
        """`trials` are those before the verdicts, by the UID of the replacement."""
        uids = {id(trial): uid for uid, trial in trials.items()}
        found = tuple(self._judge(uids[id(verdict.trial)], verdict, snapshot) for verdict in verdicts)
        self._open = {uid: row for uid, row in self._open.items() if uid in snapshot.cluster.pods}
        return found

    def _judge(self, uid: str, verdict: Verdict, snapshot: Snapshot) -> JudgedMove:
        observed, row = _failed_share(uid, snapshot), self._open.pop(uid, None)
        if row is not None:
            self._judged.append(replace(row, observed=observed, helped=verdict.helped))
            self._store(self._judged[-1])
        expected, plan_id = (None, "") if row is None else (row.expected, row.plan_id)
        pod = snapshot.cluster.pods[uid].key
        return JudgedMove(uid, pod, verdict.node, verdict.helped, observed, expected, plan_id)

    def summary(self) -> CheckedMoves | None:
        """None before any move was judged."""
        rows = self._judged
        if not rows:
            return None
        return CheckedMoves(
            len(rows),
            sum(bool(row.helped) for row in rows),
            fmean(row.expected for row in rows),
            fmean(row.observed or 0.0 for row in rows),
        )


def _failed_share(uid: str, snapshot: Snapshot) -> float:
    """A pod that is not in the snapshot's happiness has failed no probe."""
    happiness = snapshot.happiness.get(uid)
    if happiness is None:
        return 0.0
    counts = happiness.counts
    return counts.failures / (counts.successes + counts.failures)
