"""How many volumes a node can attach, by CSI driver: kube-scheduler's NodeVolumeLimits, one move at a time, and for all
nodes at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from matching.plan import PlannedMove
from matching.problem import Node, Problem, Volume
from matching.verify.placement import NO_NODE, Flags, Placement


def volume_limit_violations(problem: Problem, moves: Sequence[PlannedMove], gone: Sequence[str] = ()) -> Iterator[str]:
    """In the order of the plan. The pods of `gone` leave before the first move."""
    if not any(node.volume_limits for node in problem.nodes):
        return
    nodes = {node.name: node for node in problem.nodes}
    where = {pod.key: pod.node for pod in problem.pods} | dict.fromkeys(gone)
    volumes = {pod.key: pod.volumes for pod in problem.pods if pod.volumes}
    used: defaultdict[str | None, Counter[Volume]] = defaultdict(Counter)
    for key, found in volumes.items():
        used[where[key]].update(found)
    for move in moves:
        if move.pod in volumes and move.target in nodes:
            used[where[move.pod]].subtract(volumes[move.pod])
            if not can_attach(nodes[move.target], volumes[move.pod], +used[move.target]):
                yield f"{move.pod}: may not go to {move.target} at its turn: too many volumes are attached there"
            used[move.target].update(volumes[move.pod])
            where[move.pod] = move.target


def can_attach(node: Node, volumes: Iterable[Volume], used: Iterable[Volume]) -> bool:
    """Whether a pod with those volumes may join the pods that have the volumes `used` on the node."""
    there, new = set(used), set(volumes) - set(used)
    for driver in {volume.driver for volume in new} & node.volume_limits.keys():
        number = sum(volume.driver == driver for volume in there | set(node.attached))
        if number + sum(volume.driver == driver for volume in new) > node.volume_limits[driver]:
            return False
    return True


class VolumeLimitsByNode:
    """Which nodes could attach the volumes of a pod once the movable pods there that rank below it are gone. Pods are
    checked in rank order."""

    def __init__(self, placement: Placement, ends: Mapping[str, str | None]) -> None:
        self._placement = placement
        limited = {driver for node in placement.nodes for driver in node.volume_limits}
        self._volumes = [tuple(v for v in pod.volumes if v.driver in limited) for pod in placement.pods]
        self.involved: Flags = np.array([bool(each) for each in self._volumes], dtype=bool)
        """By row."""
        self._used: list[Counter[Volume]] = [Counter() for _ in placement.nodes]
        rows, index = {pod.key for pod in placement.pods}, {node.name: at for at, node in enumerate(placement.nodes)}
        for pod in placement.problem.pods:
            at = index.get(ends.get(pod.key) or "")
            if pod.volumes and pod.key not in rows and at is not None:
                self._used[at].update(pod.volumes)

    def allowed(self, row: int) -> Flags:
        """By node."""
        volumes = self._volumes[row]
        nodes = zip(self._placement.nodes, self._used, strict=True)
        return np.array([can_attach(node, volumes, used) for node, used in nodes], dtype=bool)

    def advance(self, row: int) -> None:
        end = int(self._placement.end[row])
        if end != NO_NODE:
            self._used[end].update(self._volumes[row])
