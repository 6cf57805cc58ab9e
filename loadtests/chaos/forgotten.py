"""The known limit: somebody deletes a move's journal entry, and its leader ends before it writes the entry again.

Nothing in the cluster tells of such a move, so its surge stays. Only what such a move left is forgiven, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from loadtests.chaos.audit import Write
from loadtests.chaos.invariants import Evidence, Term, Violation, terms
from loadtests.chaos.journal_invariants import Entry, entries

_MOST_SECONDS = 15.0
"""The deadline of a move's step in `world.SETTINGS`: a leader that goes on has written the entry again by then."""
KNOWN_LIMIT = "somebody deleted the journal entry of a move, and its leader ended before it wrote the entry again"


def forgotten_moves(evidence: Evidence) -> list[Entry]:
    """Entries that somebody else deleted under a leader that did not write them again before another one led."""
    successions = list(pairwise(terms(evidence.writes)))
    known = {entry.id: entry for entry in entries(evidence.writes)}
    return [
        known[write.name]
        for write in evidence.writes
        if write.resource == "moves"
        and write.verb == "delete"
        and write.accepted
        and not write.ours
        and write.name in known
        and not _written_after(write, evidence.writes)
        and (_succeeded_after(write, successions) or _api_away_after(write, evidence))
    ]


def _written_after(deletion: Write, writes: Iterable[Write]) -> bool:
    return any(
        write.resource == "moves"
        and write.name == deletion.name
        and write.ours
        and write.accepted
        and write.ended > deletion.ended
        for write in writes
    )


def _succeeded_after(deletion: Write, successions: Iterable[tuple[Term, Term]]) -> bool:
    until = deletion.ended + _MOST_SECONDS
    return any(led.since <= deletion.ended < following.since <= until for led, following in successions)


def _api_away_after(deletion: Write, evidence: Evidence) -> bool:
    """Then the leader loses its Lease and forgets its moves, and may lead again under the same name."""
    until = deletion.ended + _MOST_SECONDS
    return any(each.away and each.began <= until and each.ended >= deletion.ended for each in evidence.disturbances)


def is_left_by(forgotten: Sequence[Entry], left: Violation, evidence: Evidence) -> bool:
    """A replica too many or too few of the move's workload, its released pod, or the cost of one of its two pods."""
    for entry in forgotten:
        pods = [pod.name for uid in (entry.uid, *entry.replacements) if (pod := evidence.pod(uid)) is not None]
        if left.invariant in ("orphan left", "deletion cost left") and left.text in pods:
            return True
        if left.invariant == "replicas back" and left.text.startswith((f"{entry.workload} ", f"{entry.workload}: ")):
            return True
    return False
