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

    def judge(self, trials: Mapping[str, Trial], verdicts: Iterable[Verdict], snapshot: Snapshot) -> None:
        """`trials` are those before the verdicts, by the UID of the replacement."""
        uids = {id(trial): uid for uid, trial in trials.items()}
        for verdict in verdicts:
            row = self._open.get(uids.get(id(verdict.trial), ""))
            if row is not None:
                observed = _failed_share(row.replacement_uid, snapshot)
                self._judged.append(replace(row, observed=observed, helped=verdict.helped))
                self._store(self._judged[-1])
                del self._open[row.replacement_uid]
        self._open = {uid: row for uid, row in self._open.items() if uid in snapshot.cluster.pods}

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
