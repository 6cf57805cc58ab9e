"""How many volumes a node can attach, by CSI driver. Volumes that several pods of a node use count once there.

As kube-scheduler's NodeVolumeLimits: volumes that are attached without a pod that uses them count, too, and a pod that
brings no new volume of a driver passes, even where there are too many already.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.problem import Node, Pod, Volume

_NO_LIMIT = 2**31


class VolumeLimits:
    """The limits of a problem, built once. Volumes of drivers without a limit are left out."""

    def __init__(self, pods: Sequence[Pod], nodes: Sequence[Node], drivers: Sequence[str]) -> None:
        self.drivers = drivers
        self.limits: Ints = np.array(
            [[node.volume_limits.get(driver, _NO_LIMIT) for node in nodes] for driver in drivers], dtype=np.int64
        )
        """By driver and node."""
        self.volumes = [_by_driver(pod.volumes, drivers) for pod in pods]
        """By pod: the number of each driver, with the pod's volumes of that driver."""
        self.involved: Mask = np.array([bool(each) for each in self.volumes], dtype=bool)
        """By pod: whether it has volumes that are limited somewhere."""
        self.attached: defaultdict[Volume, set[int]] = defaultdict(set)
        """The nodes that a volume is attached to without a pod."""
        for at, node in enumerate(nodes):
            for volume in node.attached:
                self.attached[volume].add(at)


def volume_limits(pods: Sequence[Pod], nodes: Sequence[Node]) -> VolumeLimits | None:
    """None when no pod has a volume that is limited on some node."""
    limited = {driver for node in nodes for driver in node.volume_limits}
    used = {volume.driver for pod in pods for volume in pod.volumes} if limited else set()
    drivers = sorted(limited & used)
    return VolumeLimits(pods, nodes, drivers) if drivers else None


def _by_driver(volumes: Sequence[Volume], drivers: Sequence[str]) -> tuple[tuple[int, frozenset[Volume]], ...]:
    own = ((number, frozenset(v for v in volumes if v.driver == driver)) for number, driver in enumerate(drivers))
    return tuple((number, found) for number, found in own if found) if volumes else ()


class VolumeState:
    """How many volumes are on each node while a planner tries placements."""

    def __init__(self, limits: VolumeLimits, at: Ints) -> None:
        """`at` has the node of each pod, or NOWHERE."""
        self._limits = limits
        self._users: defaultdict[Volume, Counter[int]] = defaultdict(Counter)
        """By volume and node: how many pods use it there."""
        self._number: Ints = np.zeros_like(limits.limits)
        """By driver and node: how many volumes are there, with those that no pod uses."""
        for volume, nodes in limits.attached.items():
            if volume.driver in limits.drivers:
                self._number[limits.drivers.index(volume.driver), list(nodes)] += 1
        for pod in np.flatnonzero(limits.involved & (at != NOWHERE)).tolist():
            self.change(pod, int(at[pod]), 1)

    def change(self, pod: int, node: int, by: int) -> None:
        if node == NOWHERE:
            return
        for driver, volumes in self._limits.volumes[pod]:
            for volume in volumes:
                users = self._users[volume]
                before = users[node]
                users[node] += by
                if (before > 0) != (before + by > 0) and node not in self._limits.attached.get(volume, ()):
                    self._number[driver, node] += by

    def allows(self, pod: int) -> Mask:
        """By node, for a pod that is on none."""
        allowed: Mask = np.ones(self._number.shape[1], dtype=bool)
        for driver, volumes in self._limits.volumes[pod]:
            new = self._new(volumes)
            allowed &= (new == 0) | (self._number[driver] + new <= self._limits.limits[driver])
        return allowed

    def why_not(self, pod: int, node: int) -> str:
        for driver, volumes in self._limits.volumes[pod]:
            new, number = int(self._new(volumes)[node]), int(self._number[driver, node])
            limit = int(self._limits.limits[driver, node])
            if new and number + new > limit:
                return f"volumes of {self._limits.drivers[driver]}: {number} and {new} more, the limit is {limit}"
        return ""

    def _new(self, volumes: frozenset[Volume]) -> Ints:
        """By node: how many of these volumes no pod there uses yet."""
        new: Ints = np.full(self._number.shape[1], len(volumes), dtype=np.int64)
        for volume in volumes:
            for node, users in self._users[volume].items():
                new[node] -= users > 0
        return new
