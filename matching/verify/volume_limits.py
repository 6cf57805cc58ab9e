"""How many volumes a node can attach, by CSI driver: kube-scheduler's NodeVolumeLimits, one move at a time, and for all
nodes at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from matching.plan import PlannedMove
from matching.problem import Node, Problem, Volume
from matching.verify.placement import NO_NODE, Flags, Ints, Placement

_FAR = 2**31
"""More volumes than any node has."""


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
    checked in rank order, so only those that were checked before and those that cannot move count."""

    def __init__(self, placement: Placement, ends: Mapping[str, str | None]) -> None:
        self._end, nodes = placement.end, placement.nodes
        drivers = sorted({driver for node in nodes for driver in node.volume_limits})
        self._row = {driver: at for at, driver in enumerate(drivers)}
        self._limits: Ints = np.array(
            [[node.volume_limits.get(driver, _FAR) for node in nodes] for driver in drivers], dtype=int
        ).reshape(len(drivers), len(nodes))
        self._attached: Ints = np.zeros_like(self._limits)
        """By driver and node."""
        limited = ((row, pod.volumes) for row, pod in enumerate(placement.pods if drivers else ()) if pod.volumes)
        self._volumes = {row: {each for each in volumes if each.driver in self._row} for row, volumes in limited}
        """By row of a pod that has any."""
        self.involved: Flags = np.zeros(len(placement.pods), dtype=bool)
        """By row."""
        self.involved[[row for row, volumes in self._volumes.items() if volumes]] = True
        self._counted: defaultdict[Volume, set[int]] = defaultdict(set)
        """The nodes on which a volume is counted."""
        self._used: defaultdict[Volume, set[int]] = defaultdict(set)
        """The nodes on which a pod uses it."""
        for at, node in enumerate(nodes):
            self._attach(node.attached, at)
        index = {node.name: at for at, node in enumerate(nodes)}
        for pod, _ in placement.fixed_pods() if drivers else ():
            end = index.get(ends.get(pod.key) or "", NO_NODE)
            if pod.volumes and end != NO_NODE:
                self._use(pod.volumes, end)

    def allowed(self, row: int) -> Flags:
        """By node."""
        volumes = self._volumes[row]
        allowed: Flags = np.ones(self._limits.shape[1], dtype=bool)
        for driver in {volume.driver for volume in volumes}:
            own = [volume for volume in volumes if volume.driver == driver]
            new: Ints = np.full(len(allowed), len(own))
            for volume in own:
                new[list(self._used[volume])] -= 1
            at = self._row[driver]
            allowed &= (new == 0) | (self._attached[at] + new <= self._limits[at])
        return allowed

    def advance(self, row: int) -> None:
        end = int(self._end[row])
        if end != NO_NODE:
            self._use(self._volumes[row], end)

    def _use(self, volumes: Iterable[Volume], at: int) -> None:
        for volume in volumes:
            self._used[volume].add(at)
        self._attach(volumes, at)

    def _attach(self, volumes: Iterable[Volume], at: int) -> None:
        for volume in volumes:
            if volume.driver in self._row and at not in self._counted[volume]:
                self._counted[volume].add(at)
                self._attached[self._row[volume.driver], at] += 1
