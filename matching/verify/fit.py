"""On which nodes a pod fits, and on which its own rules let it run."""

from __future__ import annotations

import numpy as np

from matching.verify.node_rules import NodeGroups, closed_to_moves, may_come, may_stay
from matching.verify.placement import NO_NODE, TOLERANCE, Flags, Ints, Matrix, Placement


class Room:
    """What is left by axis and node at a pod's turn: without what cannot move and the pods above it that end there.
    Requests (whole numbers) may take all of it; peaks have to stay below, by the tolerance."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        quota = placement.allocatable * (1 - placement.options.headroom)
        self.by_request: Matrix = np.ascontiguousarray((placement.requestable - placement.fixed_request).T)
        self.by_peak: Matrix = np.ascontiguousarray((quota - TOLERANCE - placement.fixed_peak).T)
        self.without_headroom: Matrix = np.ascontiguousarray(
            (placement.allocatable - TOLERANCE - placement.fixed_peak).T
        )
        self.slots = np.array([node.max_pods for node in placement.nodes], dtype=int) - placement.fixed_count

    def fits(self, row: int) -> Flags:
        """By node. With inertia, a happy pod needs no headroom on its current node."""
        placement = self._placement
        need, peak = placement.request[row], placement.peak[row]
        fits: Flags = self.slots >= 1
        current = placement.current[row]
        needs_no_headroom = current != NO_NODE and placement.moves_cost and not placement.unhappy[row]
        fits_current = bool(fits[current]) and all(need[need > 0] <= self.by_request[need > 0, current])
        for axis in range(len(need)):
            if need[axis] > 0:
                fits &= need[axis] <= self.by_request[axis]
            if peak[axis] > 0:
                fits &= peak[axis] < self.by_peak[axis]
        if needs_no_headroom:
            fits[current] = fits_current and all(peak[peak > 0] < self.without_headroom[peak > 0, current])
        return fits

    def fits_each(self, rows: Ints) -> Flags:
        """`fits` by row and node, but true of each current node."""
        placement = self._placement
        fits: Flags = np.repeat(self.slots[None] >= 1, len(rows), axis=0)
        for axis, (need, peak) in enumerate(zip(placement.request[rows].T, placement.peak[rows].T, strict=True)):
            fits &= np.where(need > 0, need, -np.inf)[:, None] <= self.by_request[axis]
            fits &= np.where(peak > 0, peak, -np.inf)[:, None] < self.by_peak[axis]
        running = np.flatnonzero(placement.current[rows] != NO_NODE)
        fits[running, placement.current[rows][running]] = True
        return fits

    def advance(self, row: int) -> None:
        """The pod goes to its end; the next one is checked."""
        end = self._placement.end[row]
        if end != NO_NODE:
            self.by_request[:, end] -= self._placement.request[row]
            self.by_peak[:, end] -= self._placement.peak[row]
            self.without_headroom[:, end] -= self._placement.peak[row]
            self.slots[end] -= 1

    def advance_all(self, rows: range) -> None:
        """One after the other."""
        placement = self._placement
        placed = rows.start + np.flatnonzero(placement.end[rows.start : rows.stop] != NO_NODE)
        end, request, peak = placement.end[placed], placement.request[placed].T, placement.peak[placed].T
        for axis, (need, most) in enumerate(zip(request, peak, strict=True)):
            np.subtract.at(self.by_request[axis], end, need)
            np.subtract.at(self.by_peak[axis], end, most)
            np.subtract.at(self.without_headroom[axis], end, most)
        np.subtract.at(self.slots, end, 1)


class AllowedNodes:
    """Where a pod's own rules, fresh metrics and cordons let it run, evaluated once for all pods with equal rules."""

    def __init__(self, placement: Placement) -> None:
        self._placement, self._groups = placement, NodeGroups(placement.nodes)
        self.open_to_moves: Flags = np.array([not closed_to_moves(node) for node in placement.nodes], dtype=bool)
        kinds: dict[int, int] = {}
        self.kind: Ints = np.array([kinds.setdefault(id(pod.rules), len(kinds)) for pod in placement.pods], dtype=int)
        """By row: pods that share one value of rules."""
        self._first_rows = np.unique(self.kind, return_index=True)[1]
        self._may_come: dict[int, Flags] = {}

    def may_come(self, kind: int) -> Flags:
        """By node: whether those rules let a pod come."""
        found = self._may_come.get(kind)
        if found is None:
            rules = self._placement.pods[int(self._first_rows[kind])].rules
            found = self._may_come[kind] = self._groups.evaluate(rules, may_come)
        return found

    def all_may_come(self) -> Flags:
        """By kind and node."""
        return np.array([self.may_come(kind) for kind in range(len(self._first_rows))], dtype=bool)

    def may_stay(self, row: int) -> bool:
        return may_stay(self._placement.pods[row].rules, self._placement.nodes[self._placement.current[row]])

    def by_node(self, row: int) -> Flags:
        """No running pod goes to a node without fresh metrics or to a cordoned one, but it may stay on one."""
        current = self._placement.current[row]
        if current == NO_NODE:
            return self.may_come(int(self.kind[row]))
        allowed = self.may_come(int(self.kind[row])) & self.open_to_moves
        allowed[current] = self.may_stay(row)
        return allowed
