"""Would a pod fit on a node beside what cannot move and the pods there that rank above it?"""

from __future__ import annotations

import numpy as np

from matching.certificate.view import NOWHERE, SAME, Flags, Matrix, View


class Room:
    """What is left by axis and node when it is a pod's turn, tolerance included: less what cannot move and the pods
    above it that end there. Requests may take all of it, peaks have to stay below."""

    def __init__(self, view: View) -> None:
        self._view = view
        quota = view.allocatable * (1 - view.options.headroom)
        self.by_request: Matrix = np.ascontiguousarray((view.allocatable + SAME - view.fixed_request).T)
        self.by_peak: Matrix = np.ascontiguousarray((quota - SAME - view.fixed_peak).T)
        self.without_headroom: Matrix = np.ascontiguousarray((view.allocatable - SAME - view.fixed_peak).T)
        self.slots = np.array([node.max_pods for node in view.nodes], dtype=int) - view.fixed_count

    def fits(self, row: int) -> Flags:
        """By node. A happy pod needs no headroom on its own node where inertia counts."""
        view = self._view
        need, peak = view.request[row], view.peak[row]
        fits: Flags = self.slots >= 1
        home = view.home[row]
        calm = home != NOWHERE and view.moves_cost and not view.unhappy[row]
        at_home = bool(fits[home]) and all(need[need > 0] <= self.by_request[need > 0, home])
        for axis in range(len(need)):
            if need[axis] > 0:
                fits &= need[axis] <= self.by_request[axis]
            if peak[axis] > 0:
                fits &= peak[axis] < self.by_peak[axis]
        if calm:
            fits[home] = at_home and all(peak[peak > 0] < self.without_headroom[peak > 0, home])
        return fits

    def passes(self, row: int) -> None:
        """The pod takes its place; the next one is asked."""
        end = self._view.end[row]
        if end != NOWHERE:
            self.by_request[:, end] -= self._view.request[row]
            self.by_peak[:, end] -= self._view.peak[row]
            self.without_headroom[:, end] -= self._view.peak[row]
            self.slots[end] -= 1
