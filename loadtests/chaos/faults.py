"""The kinds of faults, and the draw: a seed in, the faults of one round out."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from loadtests.chaos.requests import MOVING, WRITES, Step
from loadtests.chaos.write_kinds import WriteKind


class FaultKind(StrEnum):
    # Answers to one request of one controller.
    CONFLICT = "409"
    EXPIRED = "410"
    THROTTLED = "429"
    THROTTLED_FOR = "429-retry-after"
    ERROR = "500"
    UNAVAILABLE = "503"
    LOST_REQUEST = "lost-request"
    LOST_ANSWER = "lost-answer"
    LATE_REQUEST = "late-request"
    HANGING_ANSWER = "hanging-answer"
    SLOW = "slow"
    CUT_WATCH = "cut-watch"
    # One controller.
    KILL_BEFORE = "kill-before"
    KILL_PASSED = "kill-passed"
    KILL_ANSWERED = "kill-answered"
    PAUSE = "pause"
    PARTITION = "partition"
    STORE_FULL = "store-full"
    # The cluster.
    API_RESTART = "api-restart"
    ETCD_RESTART = "etcd-restart"
    NODE_DOWN = "node-down"
    NODE_DELETED = "node-deleted"
    POD_DELETED = "pod-deleted"
    OWNER_SCALED = "owner-scaled"
    OWNER_DELETED = "owner-deleted"
    OWNER_ROLLED_OUT = "owner-rolled-out"
    PDB_ADDED = "pdb-added"
    QUOTA = "quota"
    SETTINGS_BROKEN = "settings-broken"
    JOURNAL_DELETED = "journal-deleted"


MEANING: dict[FaultKind, str] = {
    FaultKind.CONFLICT: "a write is answered with 409 and not passed on",
    FaultKind.EXPIRED: "a list is answered with 410, or a watch is told so",
    FaultKind.THROTTLED: "a request is answered with 429",
    FaultKind.THROTTLED_FOR: "a request is answered with 429 and Retry-After",
    FaultKind.ERROR: "a request is answered with 500",
    FaultKind.UNAVAILABLE: "a request is answered with 503",
    FaultKind.LOST_REQUEST: "the connection breaks before the request is passed on",
    FaultKind.LOST_ANSWER: "the write happens, and the connection breaks before its answer",
    FaultKind.LATE_REQUEST: "the write is held back and happens later, also when its sender is dead or has given up",
    FaultKind.HANGING_ANSWER: "the write happens, and no answer comes until the controller gives up",
    FaultKind.SLOW: "a request takes two seconds",
    FaultKind.CUT_WATCH: "a watch ends in the middle of an object",
    FaultKind.KILL_BEFORE: "kill -9 when it sends a write, which does not happen",
    FaultKind.KILL_PASSED: "kill -9 after a write, before its answer",
    FaultKind.KILL_ANSWERED: "kill -9 right after the answer to a write",
    FaultKind.PAUSE: "SIGSTOP for longer than the lease, then SIGCONT",
    FaultKind.PARTITION: "nothing passes between one controller and the API server for longer than the lease",
    FaultKind.STORE_FULL: "the files of one controller cannot grow",
    FaultKind.API_RESTART: "kube-apiserver is killed and started again",
    FaultKind.ETCD_RESTART: "etcd is killed and started again with its data",
    FaultKind.NODE_DOWN: "a node is NotReady for some seconds; its pods neither start nor end",
    FaultKind.NODE_DELETED: "a Node object is deleted and made again",
    FaultKind.POD_DELETED: "somebody deletes a pod",
    FaultKind.OWNER_SCALED: "somebody scales a workload",
    FaultKind.OWNER_DELETED: "somebody deletes a workload and makes it again",
    FaultKind.OWNER_ROLLED_OUT: "somebody changes the template of a workload",
    FaultKind.PDB_ADDED: "a PDB appears for some seconds, also one that allows nothing",
    FaultKind.QUOTA: "a ResourceQuota allows no further pod for some seconds",
    FaultKind.SETTINGS_BROKEN: "the ConfigMap holds invalid settings for some seconds",
    FaultKind.JOURNAL_DELETED: "somebody deletes the journal entry of a move in flight",
}

KILLS = frozenset({FaultKind.KILL_BEFORE, FaultKind.KILL_PASSED, FaultKind.KILL_ANSWERED})
REFUSALS = frozenset(
    {FaultKind.CONFLICT, FaultKind.EXPIRED, FaultKind.THROTTLED, FaultKind.THROTTLED_FOR}
    | {FaultKind.ERROR, FaultKind.UNAVAILABLE}
)
IN_WATCHES = frozenset({FaultKind.EXPIRED, FaultKind.CUT_WATCH})
"""Happen in the middle of a watch."""
_LOSSES = frozenset({FaultKind.LOST_REQUEST, FaultKind.LOST_ANSWER, FaultKind.LATE_REQUEST, FaultKind.HANGING_ANSWER})
AT_REQUESTS = KILLS | REFUSALS | IN_WATCHES | _LOSSES | {FaultKind.SLOW}
"""Happen when a request of the right step comes by; all others happen at their time."""

WEIGHTS: dict[FaultKind, float] = {
    FaultKind.CONFLICT: 5,
    FaultKind.EXPIRED: 3,
    FaultKind.THROTTLED: 3,
    FaultKind.THROTTLED_FOR: 3,
    FaultKind.ERROR: 5,
    FaultKind.UNAVAILABLE: 4,
    FaultKind.LOST_REQUEST: 5,
    FaultKind.LOST_ANSWER: 8,
    FaultKind.LATE_REQUEST: 2,
    FaultKind.HANGING_ANSWER: 2,
    FaultKind.SLOW: 4,
    FaultKind.CUT_WATCH: 5,
    FaultKind.KILL_BEFORE: 2,
    FaultKind.KILL_PASSED: 2,
    FaultKind.KILL_ANSWERED: 2,
    FaultKind.PAUSE: 0.7,
    FaultKind.PARTITION: 0.7,
    FaultKind.STORE_FULL: 1,
    FaultKind.API_RESTART: 0.8,
    FaultKind.ETCD_RESTART: 1,
    FaultKind.NODE_DOWN: 1.5,
    FaultKind.NODE_DELETED: 0.7,
    FaultKind.POD_DELETED: 4,
    FaultKind.OWNER_SCALED: 3,
    FaultKind.OWNER_DELETED: 0.8,
    FaultKind.OWNER_ROLLED_OUT: 2,
    FaultKind.PDB_ADDED: 2,
    FaultKind.QUOTA: 1,
    FaultKind.SETTINGS_BROKEN: 1.5,
    FaultKind.JOURNAL_DELETED: 1.5,
}
"""How often each is drawn: what is cheap and what moves must survive more often."""

_STEPS: dict[FaultKind, frozenset[Step]] = {
    FaultKind.EXPIRED: frozenset({Step.LIST, Step.WATCH}),
    FaultKind.CUT_WATCH: frozenset({Step.WATCH}),
}
_ALSO_READS = REFUSALS - {FaultKind.CONFLICT, FaultKind.EXPIRED} | {FaultKind.LOST_REQUEST, FaultKind.SLOW}


@dataclass(frozen=True, slots=True)
class Fault:
    """`at` in seconds after the round's start. What a fault needs to choose it takes from `seed`."""

    kind: FaultKind
    at: float
    seed: int
    steps: frozenset[Step] = frozenset()
    """Of faults at requests: any of these. After a while those of `INSTEAD` will do, too."""
    write: WriteKind | None = None
    """Of a kill: at this write and no other. It waits for it to the end of the round."""


PATIENCE = 3.0
INSTEAD: dict[Step, float] = dict.fromkeys(MOVING, PATIENCE) | {Step.BIND: PATIENCE}
"""A step that does not occur is not waited for longer: which steps there are depends on the strategy. Not the lease and
the journal: a new leader needs both first, and would be held up by all that waited while nobody led."""
_OFTEN = {Step.LEASE: 1, Step.STATE: 1, Step.BIND: 2, Step.HINT: 2, Step.POD_DELETE: 0}
"""How often a step is drawn; the others three times."""


_AIMS = tuple((write, kill) for kill in sorted(KILLS) for write in WriteKind)
_KILLS_UNTIL = 0.8
"""Share of the round within which kills are armed: some steps come by only now and then."""


def draw_faults(seed: int, number: int, seconds: float, only: Collection[FaultKind] = ()) -> tuple[Fault, ...]:
    """The faults of one round in the order of their times; the same for the same arguments."""
    choice = random.Random(seed)
    kinds = [kind for kind in FaultKind if not only or kind in only]
    kills = [kind for kind in kinds if kind in KILLS]
    others = [kind for kind in kinds if kind not in KILLS]
    share = sum(map(WEIGHTS.__getitem__, kills)) / sum(map(WEIGHTS.__getitem__, kinds))
    aims = _aims(seed, round(number * share), kills)
    faults = [
        Fault(kind, choice.uniform(0, seconds * _KILLS_UNTIL), choice.getrandbits(32), write=write)
        for write, kind in aims
    ]
    drawn = choice.choices(others, [WEIGHTS[kind] for kind in others], k=number - len(faults)) if others else []
    faults += [Fault(kind, choice.uniform(0, seconds), choice.getrandbits(32), _steps(kind, choice)) for kind in drawn]
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _aims(seed: int, number: int, kills: Collection[FaultKind]) -> list[tuple[WriteKind, FaultKind]]:
    """Goes on where the round of the seed before has ended, so that every step is hit equally often."""
    possible = [aim for aim in _AIMS if aim[1] in kills]
    return [possible[place % len(possible)] for place in range(seed * number, (seed + 1) * number)]


def _steps(kind: FaultKind, choice: random.Random) -> frozenset[Step]:
    if kind not in AT_REQUESTS:
        return frozenset()
    if kind in _STEPS:
        return _STEPS[kind]
    steps = sorted(WRITES | ({Step.LIST, Step.READ, Step.WATCH, Step.EVENT} if kind in _ALSO_READS else set()))
    return frozenset(choice.choices(steps, [_OFTEN.get(step, 3) for step in steps]))
