"""The Lease `rematch-extender`: the sign by which the controller, and `rematch doctor`, see that an extender runs and
that kube-scheduler asks it. Who is asked for a pod's node, and who moves it, may be two processes.
"""

from __future__ import annotations

from datetime import UTC, datetime

from reactor.clock import Clock
from reactor.cluster.api import Body, Connection
from reactor.cluster.lease import Lease, micro_time
from reactor.cluster.objects import Collection
from reactor.errors import Conflict

NAME = "rematch-extender"
ASKED = "rematch.io/asked-at"
EVERY = 10.0
"""Seconds between two renewals."""
GONE_AFTER = 60.0


class ExtenderSign:
    def __init__(self, connection: Connection, namespace: str, clock: Clock) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._leases = Collection(connection, path, Lease)
        self._namespace = namespace
        self._clock = clock

    async def renew(self, identity: str, asked: float | None) -> None:
        """`asked`: when kube-scheduler asked this process last; None leaves what another one wrote."""
        stamp = micro_time(self._clock.now())
        seen = {} if asked is None else {ASKED: micro_time(asked)}
        spec = {"holderIdentity": identity, "leaseDurationSeconds": int(GONE_AFTER), "renewTime": stamp}
        found = await self._leases.find(NAME)
        try:
            if found is not None:
                await self._leases.patch(found.metadata, {"spec": spec}, annotations=seen)
                return
            meta = {"name": NAME, "namespace": self._namespace, "annotations": seen}
            body: Body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
            await self._leases.create(body)
        except Conflict:
            return  # another extender was faster, which is as good a sign

    async def problem(self) -> str:
        """Why nobody can be steered by the extender; empty when it works. Raises a ClusterError."""
        found = await self._leases.find(NAME)
        if found is None or found.spec.renew_time is None:
            return "no extender has run in this cluster; install one (docs/extender.md)"
        silent = self._clock.now() - _seconds(found.spec.renew_time)
        if silent > GONE_AFTER:
            return f"the extender was last seen {silent:.0f} s ago; look at its pod"
        if ASKED not in found.metadata.annotations:
            return "kube-scheduler has never asked the extender; add it to its configuration (docs/extender.md)"
        return ""


def _seconds(stamp: str) -> float:
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC).timestamp()
    except ValueError:
        return 0.0
