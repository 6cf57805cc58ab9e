"""Leader election by a Lease. Only the leader writes; whoever loses the Lease stops at once.

As in client-go: another one's Lease is over when it was not renewed for its whole duration, measured on our own clock
from when we saw it change. We hold ours for the renew deadline, counted from before the renewal was sent, so that we
stop before anybody else can start.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from reactor.clock import Clock
from reactor.cluster.api import ApiRequest, Connection
from reactor.cluster.fence import is_binding
from reactor.cluster.lease import Lease, LeaseObject
from reactor.cluster.rights import INSTALL
from reactor.errors import ClusterError, Conflict, Forbidden, InputError, NotFound

log = structlog.get_logger(__name__)

_UNLIMITED = float("inf")
_SHORTEST_PAUSE = 0.1


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.renew_deadline < self.duration:
            raise InputError(
                f"--lease-duration {self.duration:g} must be longer than --lease-renew-deadline"
                f" {self.renew_deadline:g}, and that longer than --lease-retry {self.retry:g}"
            )


class Leadership(Protocol):
    """What others need to know of an election."""

    @property
    def leads(self) -> bool: ...

    @property
    def may_bind(self) -> bool: ...

    @property
    def problem(self) -> str:
        """Why this process does not lead."""
        ...


class AlwaysLeader:
    """For simulations and tests, and where nobody else can act."""

    leads = True
    may_bind = True
    problem = ""


class NeverLeader:
    """For a dry run."""

    leads = False
    may_bind = False
    problem = "a dry run changes nothing"


def new_identity() -> str:
    """Names this process: a restarted one is another."""
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"


class LeaderElection:
    def __init__(
        self, connection: Connection, namespace: str, clock: Clock, identity: str, timing: LeaseTiming | None = None
    ) -> None:
        self.identity = identity
        self._timing = timing or LeaseTiming()
        self._lease = LeaseObject(connection, namespace, self._timing.renew_deadline / 2)
        self._namespace = namespace
        self._clock = clock
        self._held: Lease | None = None
        self._held_until = float("-inf")
        self._seen = ""
        self._seen_ends = float("inf")
        """The version of another one's Lease, and when it is over unless it is renewed."""
        self._without_rights = False
        self.problem = "the Lease was not looked at yet"

    @property
    def leads(self) -> bool:
        return self._clock.monotonic() < self._held_until

    @property
    def may_bind(self) -> bool:
        """Also where the Lease cannot be used at all: pods without a scheduler would be worse than two binders."""
        return self.leads or self._without_rights

    def seconds_left(self, request: ApiRequest) -> float:
        """For `FencedConnection`."""
        if self._without_rights and is_binding(request):
            return _UNLIMITED
        return max(0.0, self._held_until - self._clock.monotonic())

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Until cancelled: `lead` runs while we hold the Lease and is cancelled when we lose it."""
        work: asyncio.Task[None] | None = None
        try:
            while True:
                await self._try()
                if self.leads and work is None:
                    log.info("leading", identity=self.identity, namespace=self._namespace)
                    work = asyncio.ensure_future(_awaited(lead))
                if not self.leads and work is not None:
                    log.warning("not leading any more", identity=self.identity, reason=self.problem)
                    await _cancelled(work)
                    work = None
                if work is not None and work.done():
                    log.error("leading failed and is begun again", error=repr(work.exception()))
                    work = None
                await self._pause(work)
        finally:
            if work is not None:
                await _cancelled(work)

    async def release(self) -> None:
        """On shutdown, when nothing is written any more. Best effort: else the Lease ends by itself."""
        if self._held_until == float("-inf"):
            return
        self._held, self._held_until = None, float("-inf")
        try:
            current = await self._lease.read()  # a renewal may have been cut off
            if current is not None and current.holder == self.identity:
                await self._lease.give_up(current)
        except ClusterError as error:
            log.info("the lease was not released and ends by itself", error=str(error))

    async def _pause(self, work: asyncio.Task[None] | None) -> None:
        """Until the next attempt; a leader wakes when its time is up, and the others when they can follow it."""
        ends = self._held_until if work is not None else self._seen_ends
        left = max(_SHORTEST_PAUSE, ends - self._clock.monotonic())
        await self._clock.sleep(min(self._timing.retry, left))

    async def _try(self) -> None:
        begun = self._clock.monotonic()
        try:
            current = self._held if self._held is not None else await self._lease.read()
            if current is not None and current.holder not in ("", self.identity) and not self._over(current):
                self._lost(f"{current.holder} leads")
                return
            self._held = await self._lease.take(current, self.identity, self._timing.duration, self._clock.now())
            self._held_until = begun + self._timing.renew_deadline
            self._without_rights, self.problem, self._seen = False, "", ""
        except Conflict:
            self._held, self.problem = None, "another process has written the Lease"
        except (Forbidden, NotFound) as error:
            self._held, self._without_rights = None, True
            command = INSTALL
            if isinstance(error, NotFound):
                command = f"kubectl create namespace {self._namespace}"
            self.problem = f"the Lease cannot be used: {error}; mend it with: {command}"
        except ClusterError as error:
            self._held, self.problem = None, f"the Lease could not be renewed: {error}"

    def _lost(self, problem: str) -> None:
        """Somebody else holds it: our time is up, whatever we believed."""
        self.problem = problem
        self._held, self._held_until, self._without_rights = None, float("-inf"), False

    def _over(self, other: Lease) -> bool:
        now = self._clock.monotonic()
        if self._seen != other.metadata.resource_version:
            self._seen = other.metadata.resource_version
            self._seen_ends = now + (other.spec.lease_duration_seconds or self._timing.duration)
        return now >= self._seen_ends


async def _awaited(lead: Callable[[], Awaitable[None]]) -> None:
    await lead()


async def _cancelled(work: asyncio.Task[None]) -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
