"""Serial choice: in rank order each pod takes the node it prefers among those where it still fits.

All nodes rank the pods in the same order, so no pod that chooses later can displace one that chose earlier, and the
result is the one stable matching for the quotas. A happy pod fits on its current node when the peaks fit at all (see
`Ledger`), so it is displaced only when pods that rank higher leave less room than that. A pod that fits nowhere with
the full headroom tries again, at its turn, with half of it and with none; then it takes the node that ends least
overloaded. So no pod loses its node for lack of room by peaks, only for lack of room by requests.

Most pods of a large cluster are happy and have neither soft nor inter-pod constraints.
`matching.compiled` chooses for those in batches, with the same result.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.compiled import loading
from matching.compiled.layout import Batch
from matching.model.ledger import Ledger, headroom_steps
from matching.planning.kernel_state import KernelState
from matching.planning.outcome import Choice
from matching.planning.placement import nobody_left_out
from matching.planning.prepared import PreparedProblem
from matching.preferences import DECIMALS, MatchedLoads, preferred_nodes
from matching.problem import Availability

_UNRESTRICTED = np.zeros(0, dtype=bool)
_FEW = 8
"""Pods for which work on arrays does not pay."""


def serial_choice(prepared: PreparedProblem, choosers: Mask, at: Ints) -> Choice:
    """Pods that do not choose stay as `at` says. A pod that no node can take by requests ends NOWHERE."""
    turns = _Turns(prepared, choosers, at)
    ranked = prepared.ranking[choosers[prepared.ranking]]
    kernels = loading.kernels(len(ranked), len(prepared.arrays.nodes))
    if kernels is None or not prepared.arrays.nodes:
        turns.in_numpy(ranked)
    else:
        turns.in_batches(kernels, ranked)
    return Choice(turns.at, choosers, turns.headroom)


def choice_for_all(prepared: PreparedProblem, choosers: Mask) -> Choice | None:
    """Serial choice in which every running pod ends with a node; None as in `nobody_left_out`."""
    current = prepared.arrays.current
    return nobody_left_out(current, lambda kept: serial_choice(prepared, choosers & ~kept, current))


class _Turns:
    def __init__(self, prepared: PreparedProblem, choosers: Mask, at: Ints) -> None:
        self._prepared = prepared
        self.at: Ints = np.where(choosers, NOWHERE, at)
        self.headroom: dict[int, float | None] = {}
        self._ledger = Ledger(prepared.arrays, self.at)
        self._matched = MatchedLoads(prepared.arrays, np.where(choosers, prepared.arrays.current, at))

    def in_numpy(self, ranked: Ints) -> None:
        """Most pods get the node they prefer among those with room now: rooms only shrink from turn to turn. So runs
        of them are put at once. Unhappy pods, pods that are spread and pods with inter-pod constraints see what is
        there at their turn."""
        arrays, preferred = self._prepared.arrays, self._preferred_nodes(ranked)
        separate = preferred == NOWHERE
        if arrays.inter_pod is not None:
            separate |= arrays.inter_pod.involved[ranked]
        begin = 0
        for stop in [*np.flatnonzero(separate).tolist(), len(ranked)]:
            self._put_run(ranked[begin:stop], preferred[begin:stop])
            for pod, node in zip(ranked[stop : stop + 1].tolist(), preferred[stop : stop + 1].tolist(), strict=True):
                self._choose(pod, node)
            begin = stop + 1

    def _preferred_nodes(self, ranked: Ints) -> Ints:
        """Of each of those pods; NOWHERE where it has to be found out at its turn."""
        arrays = self._prepared.arrays
        if arrays.options.availability is Availability.AFTER or len(ranked) <= _FEW:
            return np.full(len(ranked), NOWHERE)
        asked = np.zeros(len(arrays.pods), dtype=bool)
        asked[ranked] = ~arrays.unhappy[ranked]
        if arrays.default_spread is not None:
            asked &= ~arrays.default_spread.applies
        return preferred_nodes(arrays, self._roomy, self._prepared.preferences, asked)[ranked]

    def _roomy(self, pods: Ints) -> Mask:
        return self._prepared.candidates.rows(pods) & self._ledger.takes_each(pods)

    def _put_run(self, pods: Ints, nodes: Ints) -> None:
        """Halves of a run that does not fit as a whole are tried again."""
        if len(pods) <= _FEW:
            for pod, node in zip(pods.tolist(), nodes.tolist(), strict=True):
                self._choose(pod, node)
        elif self._ledger.takes_all(pods, nodes):
            self.at[pods] = nodes
            self._ledger.put_all(pods, nodes)
            self._matched.put_all(pods, nodes)
        else:
            half = len(pods) // 2
            self._put_run(pods[:half], nodes[:half])
            self._put_run(pods[half:], nodes[half:])

    def in_batches(self, kernels: ModuleType, ranked: Ints) -> None:
        """A batch ends with a pod that has inter-pod constraints, or before one that only numpy can handle."""
        state = self._prepared.kernel_input.state(self._ledger, self._matched)
        kernels.refresh_all(state.nodes, state.blocks, state.options.after)
        arrays, begin = self._prepared.arrays, 0
        stops = arrays.numpy_only if arrays.inter_pod is None else arrays.numpy_only | arrays.inter_pod.involved
        for stop in [*np.flatnonzero(stops[ranked]).tolist(), len(ranked)]:
            last = int(ranked[stop]) if stop < len(ranked) else NOWHERE
            alone = last == NOWHERE or bool(arrays.numpy_only[last])
            self._choose_batch(
                kernels, state, ranked[begin : stop if alone else stop + 1], restricted=None if alone else last
            )
            begin = stop + 1
            if alone and last != NOWHERE and (node := self._choose(last, NOWHERE)) != NOWHERE:
                kernels.refresh(state.nodes, state.blocks, node, state.options.after)

    def _choose_batch(self, kernels: ModuleType, state: KernelState, pods: Ints, restricted: int | None) -> None:
        """`restricted`: the last pod, when it has inter-pod constraints. The others do not affect those, so they can be
        evaluated before the batch. The mask is copied, because numba would compile again for a read-only array."""
        if not len(pods):
            return
        allowed = _UNRESTRICTED if restricted is None else self._ledger.inter_pod.allows(restricted).copy()
        batch = Batch(pods, restricted is not None, allowed, state.scratch)
        nodes, given = np.full(len(pods), NOWHERE), np.zeros(len(pods), dtype=np.int64)
        kernels.choose_in_turn(state.nodes, state.blocks, state.pods, state.options, batch, (nodes, given))
        self.at[pods] = nodes
        self._matched.where[pods[nodes != NOWHERE]] = nodes[nodes != NOWHERE]
        plain = len(pods) if restricted is None else len(pods) - 1
        self._ledger.inter_pod.put_unconstrained(pods[:plain], nodes[:plain])
        if restricted is not None and nodes[-1] != NOWHERE:
            self._ledger.inter_pod.put(restricted, int(nodes[-1]))
        steps: tuple[float | None, ...] = (*headroom_steps(self._prepared.arrays.options.headroom), None)
        for index in np.flatnonzero((nodes != NOWHERE) & (given > 0)).tolist():
            self.headroom[int(pods[index])] = steps[int(given[index])]

    def _choose(self, pod: int, preferred_node: int) -> int:
        if preferred_node != NOWHERE and self._ledger.takes(pod, preferred_node):
            return self._put(pod, preferred_node, self._prepared.arrays.options.headroom)
        return self._put(pod, *_best_node(self._prepared, self._ledger, self._matched, pod))

    def _put(self, pod: int, node: int, given: float | None) -> int:
        if node != NOWHERE:
            self.at[pod] = node
            if given != self._prepared.arrays.options.headroom:
                self.headroom[pod] = given
            self._ledger.put(pod, node)
            self._matched.put(pod, node)
        return node


def _best_node(prepared: PreparedProblem, ledger: Ledger, matched: MatchedLoads, pod: int) -> tuple[int, float | None]:
    """The node, and the headroom it was found with; None when there was no room even without any."""
    allowed = prepared.candidates.of(pod) & ledger.fits(pod)
    if not allowed.any():
        return NOWHERE, None
    for headroom in headroom_steps(prepared.arrays.options.headroom):
        roomy = allowed & ledger.fits_peak(pod, headroom)
        if roomy.any():
            return prepared.preferences.choose(pod, roomy, matched), headroom
    return _least_overloaded(prepared, ledger, matched, pod, allowed), None


def _least_overloaded(prepared: PreparedProblem, ledger: Ledger, matched: MatchedLoads, pod: int, allowed: Mask) -> int:
    """Staying wins ties, then the pod's preference."""
    worst = np.where(allowed, ledger.shares_with(pod).max(axis=0).round(DECIMALS), np.inf)
    best: Mask = worst == worst.min()
    current = int(prepared.arrays.current[pod])
    if current != NOWHERE and best[current]:
        return current
    return prepared.preferences.choose(pod, best, matched)


def choice_with_dumping(prepared: PreparedProblem, choosers: Mask, at: Ints) -> Choice:
    """Serial choice that may leave pods out, as the paper does: a pod that fits nowhere with the full headroom (which
    the paper does not have) is dumped, or stays pending, and uses no room of those that choose after it. Pods that do
    not choose stay as `at` says."""
    matched = MatchedLoads(prepared.arrays, np.where(choosers, prepared.arrays.current, at))
    at = np.where(choosers, NOWHERE, at)
    ledger = Ledger(prepared.arrays, at)
    headroom = prepared.arrays.options.headroom
    for pod in prepared.ranking[choosers[prepared.ranking]].tolist():
        roomy = prepared.candidates.of(pod) & ledger.fits(pod) & ledger.fits_peak(pod, headroom)
        if roomy.any():
            node = prepared.preferences.choose(pod, roomy, matched)
            at[pod] = node
            ledger.put(pod, node)
            matched.put(pod, node)
        else:
            ledger.inter_pod.remove(pod)
            matched.drop(pod)
    return Choice(at, choosers, {})
