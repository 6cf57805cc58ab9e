"""The PlacementHint object `rematch`: what the policy `rematch-hints` does to the next pod of an owner.

One object for all hints, because the binding of a policy names its parameters. So every change is compare-and-swap.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping

import msgspec
import structlog
from msgspec import Struct

from reactor.clock import Clock
from reactor.cluster.api import Connection
from reactor.cluster.backoff import Backoff
from reactor.cluster.objects import Collection, ObjectMeta
from reactor.errors import ClusterError, Conflict, Throttled, Unreachable

log = structlog.get_logger(__name__)

MOVE_LABEL = "rematch.io/move"
"""The policy stamps it, with the id of the move, on the pod that a hint applied to."""
HOSTNAME_LABEL = "kubernetes.io/hostname"
HINTS_PATH = "/apis/rematch.io/v1alpha1/placementhints"
OBJECT_NAME = "rematch"
MAX_HINTS = 1000
"""As in the CRD."""

_LONGEST_RETRY = 30.0
_SEEN_SECONDS = 0.25
_ATTEMPTS = 5
_PAUSE = 0.2
_LONGEST_PAUSE = 2.0


class Hint(Struct, frozen=True, gc=False):
    """`hostname` is the value of the planned node's label `kubernetes.io/hostname`, which may differ from its name."""

    move: str
    hostname: str
    pod: str | None = None
    """Only the pod with this name: a StatefulSet's. Without it the next pods of the owner."""
    hard: bool = False
    avoid: str | None = None
    """As `hostname`, of the node that the pod leaves: a soft hint also says not to come back there."""


class HintRefused(Conflict):
    """By us, before it was sent: another look at the object would not change it."""


Hints = Mapping[str, Hint]
"""By the UID of the owner."""
Change = Callable[[Hints], Mapping[str, Hint | None]]
"""The owners whose hint changes; None removes it. May raise HintRefused."""


class _Spec(Struct, gc=False):
    hints: dict[str, Hint] = {}


class _PlacementHint(Struct, gc=False):
    metadata: ObjectMeta
    spec: _Spec | None = None


class HintWriter:
    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._objects = Collection(connection, HINTS_PATH, _PlacementHint)
        self._clock = clock
        self._changing = asyncio.Lock()
        """Changes that this process makes at the same time would conflict with each other."""

    async def read(self) -> Hints:
        """Empty when there is no such object, or no such kind."""
        return _hints(await self._objects.find(OBJECT_NAME))

    async def change(self, change: Change, *, writer: str | None = None) -> None:
        """Write what `change` says about the hints as they are now; nothing when it says nothing.

        A conflict, or an answer that was lost, leads to another look at the object: a change that has happened is not
        repeated. `writer` takes over: it is written in any case, so that late writes of an earlier process conflict.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                async with self._changing:
                    await self._change_once(change, writer)
            except HintRefused:
                raise
            except (Conflict, Unreachable, Throttled) as error:
                if attempt == _ATTEMPTS:
                    raise
                stated = error.retry_after if isinstance(error, Throttled) else 0.0
            else:
                return
            await self._clock.sleep(max(_PAUSE * attempt, min(stated, _LONGEST_PAUSE)))

    async def until_seen(self) -> None:
        """A moment after a hint was written: API servers learn of it by watches of their own, and a pod that is created
        before is not stamped. On a quiet one that takes a few milliseconds."""
        await self._clock.sleep(_SEEN_SECONDS)

    async def _change_once(self, change: Change, writer: str | None) -> None:
        found = await self._objects.find(OBJECT_NAME)
        hints = _hints(found)
        changes = change(hints)
        if not changes and writer is None:
            return
        after = {**hints, **changes}
        if sum(hint is not None for hint in after.values()) > max(MAX_HINTS, len(hints)):
            raise HintRefused(
                f"PlacementHint {OBJECT_NAME} has {len(hints)} hints, and at most {MAX_HINTS} are allowed"
            )
        stated = {} if writer is None else {"writer": writer}
        if found is not None:
            # Fields that a hint does not have are null here: those of the hint that it replaces would stay otherwise.
            await self._objects.patch(found.metadata, {"spec": {"hints": msgspec.to_builtins(changes), **stated}})
            return
        new = {uid: _without_nulls(hint) for uid, hint in changes.items() if hint is not None}
        body = {"apiVersion": "rematch.io/v1alpha1", "kind": "PlacementHint", "metadata": {"name": OBJECT_NAME}}
        await self._objects.create({**body, "spec": {"hints": new, **stated}})


class HintReader:
    """The hints as they are now, for the extender of kube-scheduler. Without the CRD there are none."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._writer = HintWriter(connection, clock)
        self._clock = clock
        self._backoff = Backoff(random.random, cap=_LONGEST_RETRY)
        self.hints: Hints = {}

    async def run(self) -> None:
        """Until cancelled. It reads often enough for `until_seen`: one small object, which we may `get` and not watch.
        What was read last stays while the API server cannot be asked."""
        problem = ""
        while True:
            try:
                self.hints = await self._writer.read()
                problem, pause = "", _SEEN_SECONDS / 2
                self._backoff.reset()
            except ClusterError as error:
                if not problem:
                    log.warning("hints cannot be read", error=str(error))
                problem, pause = str(error), self._backoff.next()
            await self._clock.sleep(pause)


def _hints(found: _PlacementHint | None) -> Hints:
    return {} if found is None or found.spec is None else found.spec.hints


def _without_nulls(hint: Hint) -> dict[str, object]:
    return {key: value for key, value in msgspec.structs.asdict(hint).items() if value is not None}
