"""The Lease of the leader: who holds it, and taking it by compare-and-swap."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from msgspec import Struct

from reactor.cluster.api import Body, Connection
from reactor.cluster.objects import Collection, ObjectMeta

LEASE = "rematch"


class LeaseSpec(Struct, rename="camel", frozen=True, gc=False):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Struct, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()

    @property
    def holder(self) -> str:
        return self.spec.holder_identity or ""


class LeaseObject:
    """Every method raises a ClusterError. Times in the object are for readers only: nobody's clock is compared."""

    def __init__(self, connection: Connection, namespace: str, deadline: float) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._leases = Collection(connection, path, Lease, deadline)
        self._namespace = namespace

    async def read(self) -> Lease | None:
        return await self._leases.find(LEASE)

    async def take(self, before: Lease | None, holder: str, duration: float, now: float) -> Lease:
        """Acquire or renew it, from what was read before. Conflict when somebody else was faster."""
        stamp = micro_time(now)
        seconds = math.ceil(duration)  # rounded down, others could follow before we stop
        spec: dict[str, object] = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": stamp}
        if before is None or before.holder != holder:
            past = before.spec.lease_transitions or 0 if before is not None else 0
            spec |= {"acquireTime": stamp, "leaseTransitions": past + (1 if before is not None else 0)}
        if before is not None:
            return await self._leases.patch(before.metadata, {"spec": spec})
        body: Body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE, "namespace": self._namespace},
            "spec": spec,
        }
        return await self._leases.create(body)

    async def give_up(self, held: Lease) -> None:
        """Deleted: the next one need not wait for its end, and an uninstallation leaves nothing."""
        await self._leases.delete(held.metadata)


def micro_time(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
