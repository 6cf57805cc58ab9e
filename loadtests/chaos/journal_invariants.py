"""What must hold between the journal and the writes that it announces, as the audit log shows both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from loadtests.chaos.audit import Write
from loadtests.chaos.requests import Step

NOT_ANNOUNCED, TWICE = "not announced", "moved twice"


@dataclass(frozen=True, slots=True)
class Entry:
    """A Move object, from its creation to its end."""

    id: str
    plan: str
    uid: str
    """Of the pod that is moved."""
    workload: str
    """The name of its Deployment, ReplicaSet or StatefulSet."""
    began: float
    ended: float = float("inf")
    replacements: frozenset[str] = frozenset()


def entries(writes: Iterable[Write]) -> list[Entry]:
    """Writes by anybody: somebody else may delete an entry."""
    found: dict[str, Entry] = {}
    for write in sorted(writes, key=lambda each: each.ended):
        if write.resource != "moves" or not write.accepted:
            continue
        if write.verb in ("delete", "deletecollection") and write.name in found:
            found[write.name] = _changed(found[write.name], ended=write.ended)
        elif (move := _move_of(write)) is not None:
            before = found.get(write.name)
            replacement = frozenset(filter(None, (move.get("replacement"),)))
            if before is None:
                found[write.name] = Entry(
                    write.name,
                    str(move.get("plan_id", "")),
                    str((move.get("pod") or {}).get("uid", "")),
                    str(move.get("workload", "")).rpartition("/")[2],
                    write.began,
                    replacements=replacement,
                )
            else:
                found[write.name] = _changed(before, replacements=before.replacements | replacement)
    return list(found.values())


def _changed(entry: Entry, *, ended: float | None = None, replacements: frozenset[str] | None = None) -> Entry:
    return Entry(
        entry.id,
        entry.plan,
        entry.uid,
        entry.workload,
        entry.began,
        entry.ended if ended is None else ended,
        entry.replacements if replacements is None else replacements,
    )


def _move_of(write: Write) -> dict[str, Any] | None:
    spec = write.response.get("spec") or {}
    move = spec.get("move")
    return move if isinstance(move, dict) else None


def unannounced(writes: Sequence[Write], known: Sequence[Entry]) -> Iterator[Write]:
    """Accepted writes of ours that take a pod away or scale a workload without an entry at that time.

    A write that was held back may arrive after its move was finished by others: it names a UID or a version.
    """
    pods = _first_times((entry.uid, entry.began) for entry in known)
    workloads = _first_times((entry.workload, entry.began) for entry in known)
    for write in writes:
        if write.ours and write.accepted:
            if write.step in (Step.EVICT, Step.POD_DELETE):
                announced = pods.get(uid_of(write), float("inf"))
            elif write.step is Step.OWNER:
                announced = workloads.get(write.name, float("inf"))
            else:
                continue
            if announced > write.began:
                yield write


def _first_times(times: Iterable[tuple[str, float]]) -> dict[str, float]:
    first: dict[str, float] = {}
    for name, at in times:
        first[name] = min(at, first.get(name, at))
    return first


def uid_of(write: Write) -> str:
    """The UID that an eviction or deletion names."""
    body = write.request if isinstance(write.request, dict) else {}
    options = body.get("deleteOptions") or body
    return str((options.get("preconditions") or {}).get("uid", ""))


def moved_twice(known: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Two entries of one plan for one pod, or for a pod and the replacement that it got."""
    for number, one in enumerate(known):
        for other in known[number + 1 :]:
            related = one.uid == other.uid or other.uid in one.replacements or one.uid in other.replacements
            if one.plan and one.plan == other.plan and related:
                yield one, other
