"""Would a pod fit on a node beside what cannot move and the pods there that rank above it?"""

from __future__ import annotations

import numpy as np

from matching.certificate.view import NOWHERE, SAME, Flags, Ints, Matrix, View


class Room:
    """Per node the running sums over the pods that end there, in rank order, so that any pair is two look-ups."""

    def __init__(self, view: View) -> None:
        self._view = view
        number = max(1, len(view.pods))
        placed = np.flatnonzero(view.end != NOWHERE)
        by_node = placed[np.argsort(view.end[placed], kind="stable")]
        self._keys = view.end[by_node] * number + by_node
        self._first = np.searchsorted(self._keys, np.arange(len(view.nodes) + 1) * number)
        self._request = self._sums(view.request[by_node])
        self._peak = self._sums(view.peak[by_node])
        self._max_pods = np.array([node.max_pods for node in view.nodes], dtype=int)
        self._quota = view.allocatable * (1 - view.options.headroom)

    def fits(self, rows: Ints, nodes: Ints) -> Flags:
        """Pair by pair. A happy pod needs no headroom on its own node where inertia counts."""
        view = self._view
        above = np.searchsorted(self._keys, nodes * max(1, len(view.pods)) + rows) - self._first[nodes]
        place = self._first[nodes] + nodes + above
        need, peak = view.request[rows], view.peak[rows]
        requested = view.fixed_request[nodes] + self._request[place] + need
        peaks = view.fixed_peak[nodes] + self._peak[place] + peak
        at_home = (view.home[rows] == nodes) & ~view.unhappy[rows] & view.moves_cost
        quota = np.where(at_home[:, None], view.allocatable[nodes], self._quota[nodes])
        by_request = ((need == 0) | (requested <= view.allocatable[nodes] + SAME)).all(axis=1)
        by_peak = ((peak == 0) | (peaks < quota - SAME)).all(axis=1)
        fits: Flags = by_request & by_peak & (view.fixed_count[nodes] + above + 1 <= self._max_pods[nodes])
        return fits

    def _sums(self, amounts: Matrix) -> Matrix:
        """For every node nothing, the first, the first two, ... one after the other."""
        sums = np.zeros((len(amounts) + len(self._view.nodes), amounts.shape[1]))
        for node, (start, stop) in enumerate(zip(self._first[:-1].tolist(), self._first[1:].tolist(), strict=True)):
            if stop > start:
                sums[start + node + 1 : stop + node + 1] = amounts[start:stop].cumsum(axis=0)
        return sums
