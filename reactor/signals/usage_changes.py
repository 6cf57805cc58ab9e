"""What explains a change of usage: rollouts and scalings of workloads, and changes of nodes."""

from __future__ import annotations

from reactor.cluster.records import Node, Workload
from storage.rows import SeriesKind, UsageEventRow

_MOST = 10_000
"""Kept until they are stored. A whole cluster can change at once."""


class UsageChanges:
    def __init__(self) -> None:
        self._events: list[UsageEventRow] = []

    def observe_workload(self, old: Workload | None, new: Workload | None, now: float) -> None:
        """Deployments and StatefulSets; of those that come or go, their pods tell enough."""
        if old is None or new is None or old.generation == new.generation:
            return
        scaled = f"scaled from {old.replicas} to {new.replicas} replicas"
        kind = "ReplicaSet" if new.kind == "Deployment" else new.kind
        name = f"{new.namespace}/{kind}/{new.name}"
        self._note("workload", name, scaled if new.replicas != old.replicas else "rolled out a new spec", now)

    def observe_node(self, old: Node | None, new: Node | None, now: float) -> None:
        if new is None:
            self._note("node", old.name if old is not None else "", "removed", now)
        elif old is None:
            self._note("node", new.name, "added", now)
        else:
            changes = (
                ("Ready" if new.ready else "not Ready") if new.ready != old.ready else "",
                ("cordoned" if new.unschedulable else "uncordoned") if new.unschedulable != old.unschedulable else "",
                "another size" if new.allocatable != old.allocatable else "",
            )
            if any(changes):
                self._note("node", new.name, ", ".join(filter(None, changes)), now)

    def take(self) -> list[UsageEventRow]:
        """Since the last call."""
        taken, self._events = self._events, []
        return taken

    def _note(self, kind: SeriesKind, name: str, text: str, now: float) -> None:
        if len(self._events) < _MOST:
            self._events.append(UsageEventRow(now, kind, name, text))
