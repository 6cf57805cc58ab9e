"""Small problems: every placement is evaluated, to find one with fewer blocking pairs than serial choice leaves.

With inter-pod constraints, or when no pod may be left out, serial choice need not end in a stable matching even where
there is one. And the moves to a stable matching may wait for each other's room. Up to MOST_PLACEMENTS placements are
evaluated. Of those in which no running pod loses its node and the moves can be made in some order, the one with the
fewest blocking pairs is taken, then the one with the fewest moves. It must not take headroom from more pods than serial
choice does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.constraints import resources
from matching.constraints.inter_pod import InterPodState
from matching.model.arrays import share_of_room
from matching.model.ledger import Ledger
from matching.planning.executable import instead_of
from matching.planning.move_order import order_of_placement
from matching.planning.outcome import Choice, with_placement
from matching.planning.prepared import PreparedProblem
from matching.preferences import DECIMALS
from matching.problem import TOLERANCE, Availability


@dataclass(frozen=True, slots=True)
class Placements:
    """Every placement of a few pods."""

    at: Ints
    """One row per placement, one column per pod."""
    loads: Floats
    """Peaks: axes, placements, nodes."""


def all_placements(prepared: PreparedProblem, free: Mask, start: Ints, most: int) -> Placements | None:
    """Of the `free` pods; the others are as in `start`. Each pod may stay where it is, and pods that arrive on a node
    fit by requests and pod count. None when there would be more than `most`."""
    arrays = prepared.arrays
    pods = np.flatnonzero(free).tolist()
    choices: list[Ints] = []
    total = 1
    for pod in pods:
        choices.append(_choices(prepared, pod, int(start[pod])))
        total *= len(choices[-1])
        if total > most:
            return None
    at = np.tile(start, (total, 1))
    number, stride = np.arange(total), 1
    for pod, nodes in zip(pods, choices, strict=True):
        at[:, pod] = nodes[number // stride % len(nodes)]
        stride *= len(nodes)
    at = at[_fitting(prepared, at, pods, start)]
    without = np.where(free, NOWHERE, start)
    return Placements(at, _sums(Ledger(arrays, without).load, arrays.peak, at, pods))


def _choices(prepared: PreparedProblem, pod: int, here: int) -> Ints:
    allowed = prepared.candidates.of(pod)
    if here != NOWHERE:
        allowed[here] = True
    return np.flatnonzero(allowed)


def _sums(base: Floats, amounts: Floats, at: Ints, pods: list[int]) -> Floats:
    sums = np.repeat(base[:, None, :], len(at), axis=1)
    rows = np.arange(len(at))
    for pod in pods:
        sums[:, rows, at[:, pod]] += amounts[:, pod, None]
    return sums


def _fitting(prepared: PreparedProblem, at: Ints, pods: list[int], start: Ints) -> Mask:
    arrays, rows = prepared.arrays, np.arange(len(at))
    chosen = np.zeros(len(start), dtype=bool)
    chosen[pods] = True
    ledger = Ledger(arrays, np.where(chosen, NOWHERE, start))
    left = -_sums(-ledger.free, arrays.request, at, pods)
    slots = np.tile(ledger.slots, (len(at), 1))
    fits = np.ones(len(at), dtype=bool)
    for pod in pods:
        slots[rows, at[:, pod]] -= 1
    for pod in pods:
        node = at[:, pod]
        enough = ((left[:, rows, node] >= 0) | (arrays.request[:, pod, None] == 0)).all(axis=0)
        fits &= (node == start[pod]) | (enough & (slots[rows, node] >= 0))
    return fits


MOST_PLACEMENTS = 1 << 12
"""Six pods that may use four nodes, or seven that may use three."""


def with_fewer_blocking_pairs(prepared: PreparedProblem, choosers: Mask, choice: Choice) -> Choice:
    """The choice itself where it leaves no blocking pair and can be carried out, where there are too many placements,
    and where preferences depend on the pods that chose before."""
    lists_change = prepared.problem.options.availability is Availability.AFTER
    stuck = not lists_change and _is_stuck(prepared, choice)
    if lists_change or (prepared.arrays.inter_pod is None and not choice.kept_on_node and not stuck):
        return choice
    placements = all_placements(prepared, choosers & (choice.at != NOWHERE), prepared.arrays.current, MOST_PLACEMENTS)
    if placements is None:
        return choice
    most = np.iinfo(np.int64).max
    own = count_blocking(prepared, choosers, choice.at[None])
    blocking = most if stuck else _blocking_of(prepared, choosers, choice.at, own, 0, most)
    if blocking == 0:
        return choice
    at = _fewest_blocking(prepared, choosers, placements.at, (int(own.degraded[0]), blocking))
    if at is None:
        return choice
    staying = np.flatnonzero(choosers & (at == prepared.arrays.current)).tolist()
    kept = frozenset(pod for pod in staying if _was_kept(prepared, choice, pod))
    found = instead_of(prepared, choice, at) if stuck else with_placement(choice, at)
    return replace(found, chose=choosers, kept_on_node=kept)


def _is_stuck(prepared: PreparedProblem, choice: Choice) -> bool:
    """A pod that moves has at least two nodes to choose from, so with more of them there are too many placements."""
    moving = int((choice.at != prepared.arrays.current).sum())
    return moving < MOST_PLACEMENTS.bit_length() and bool(order_of_placement(prepared, choice.at).stuck)


def _was_kept(prepared: PreparedProblem, choice: Choice, pod: int) -> bool:
    """Whether it only stays so that it is not left out: serial choice kept it there, or a taint evicts it."""
    current = int(prepared.arrays.current[pod])
    return pod in choice.kept_on_node or (current != NOWHERE and not prepared.candidates.of(pod)[current])


def _fewest_blocking(prepared: PreparedProblem, choosers: Mask, at: Ints, found: tuple[int, int]) -> Ints | None:
    """None when no placement has fewer blocking pairs than `found`, which has the degraded pods and the pairs."""
    counts = count_blocking(prepared, choosers, at)
    degraded, most = found
    uncertain = sum((wants.sum(axis=1) for wants in counts.inter_pod_pairs.values()), np.zeros(len(at), dtype=np.int64))
    moves = (at != prepared.arrays.current).sum(axis=1)
    best: Ints | None = None
    for row in np.lexsort((moves, uncertain, counts.certain)).tolist():
        if counts.certain[row] >= most:
            break
        if counts.degraded[row] > degraded:
            continue
        blocking = _blocking_of(prepared, choosers, at[row], counts, row, most)
        if blocking < most and not order_of_placement(prepared, at[row]).stuck:
            best, most = at[row], blocking
    return best


def _blocking_of(
    prepared: PreparedProblem, choosers: Mask, at: Ints, counts: BlockingCounts, row: int, most: int
) -> int:
    """Counts no further than `most`."""
    count = int(counts.certain[row])
    for pod, wants in counts.inter_pod_pairs.items():
        for node in np.flatnonzero(wants[row]).tolist():
            if count >= most:
                return count
            count += not refused_by_inter_pod(prepared, choosers, at, pod, node)
    return count


@dataclass(frozen=True, slots=True)
class BlockingCounts:
    certain: Ints
    """By placement: blocking pairs of pods without inter-pod constraints."""
    inter_pod_pairs: dict[int, Mask]
    """By pod with inter-pod constraints: the placements and nodes where only these can prevent a blocking pair."""
    degraded: Ints
    """By placement: pods whose node has too little headroom for them."""


def count_blocking(prepared: PreparedProblem, choosers: Mask, at: Ints) -> BlockingCounts:
    """The planner's own count of blocking pairs, for many placements at once. `at` has one row per placement; pods that
    do not choose are where they are now.

    (p, n) blocks when p may run on n, prefers n at its turn to the node it has, and fits there, with the headroom that
    it needs, next to what cannot move and the pods that rank above it. Inter-pod constraints depend on the whole
    placement, so `refused_by_inter_pod` checks them only where they matter.
    """
    state, number = _NodeStates(prepared, choosers, len(at)), np.arange(len(at))
    certain, degraded = np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.int64)
    inter_pod_pairs: dict[int, Mask] = {}
    for pod in prepared.ranking[choosers[prepared.ranking]].tolist():
        end = at[:, pod]
        spare, preference_rank = state.fits_peak(pod), state.preference_rank(pod)
        allowed = prepared.candidates.of(pod)
        allowed_there = (end != NOWHERE) & allowed[end]
        had = np.where(allowed_there, preference_rank[number, end], np.iinfo(np.int64).max)
        wants: Mask = (preference_rank < had[:, None]) & allowed & spare & state.fits(pod)
        wants[number[end != NOWHERE], end[end != NOWHERE]] = False
        degraded += (end != NOWHERE) & ~spare[number, end]
        if is_involved(prepared, pod):
            inter_pod_pairs[pod] = wants
        else:
            certain += wants.sum(axis=1)
        state.put(pod, end)
    return BlockingCounts(certain, inter_pod_pairs, degraded)


def is_involved(prepared: PreparedProblem, pod: int) -> bool:
    constraints = prepared.arrays.inter_pod
    return constraints is not None and bool(constraints.involved[pod])


def refused_by_inter_pod(prepared: PreparedProblem, choosers: Mask, at: Ints, pod: int, node: int) -> bool:
    """Whether inter-pod constraints keep the pod from the node, in that placement, without the choosers there that rank
    below it."""
    inter_pod = InterPodState(prepared.arrays.inter_pod, len(prepared.arrays.nodes), prepared.arrays.current, at)
    position = np.flatnonzero(prepared.ranking == pod)[0]
    for other in prepared.ranking[position + 1 :].tolist():
        if choosers[other] and at[other] == node:
            inter_pod.remove(other)
    return not inter_pod.allows_on(pod, node)


class _NodeStates:
    """The nodes while pods are put there in rank order, in all placements at once."""

    def __init__(self, prepared: PreparedProblem, choosers: Mask, placements: int) -> None:
        self._prepared = prepared
        arrays = prepared.arrays
        ledger = Ledger(arrays, np.where(choosers, NOWHERE, arrays.current))
        self._free, self._load = (_repeated(amounts, placements) for amounts in (ledger.free, ledger.load))
        self._slots = np.tile(ledger.slots, (placements, 1))
        self._matched_load = _repeated(arrays.background + arrays.taken_now.peak, placements)
        limit = 1 - arrays.options.headroom
        self._where = np.tile(arrays.current, (placements, 1))
        self._overloaded = share_of_room(self._matched_load[:, 0], arrays.allocatable).max(axis=0) > limit + TOLERANCE

    def fits(self, pod: int) -> Mask:
        """By requests and number of pods."""
        enough = (self._free >= self._prepared.arrays.least_free[:, pod, None, None]).all(axis=0)
        fits: Mask = enough & (self._slots >= 1)
        return fits

    def fits_peak(self, pod: int) -> Mask:
        arrays = self._prepared.arrays
        quota = resources.peak_quota(arrays.allocatable, arrays.options.headroom)
        if arrays.headroom_exempt[pod]:
            quota[:, arrays.current[pod]] = arrays.allocatable[:, arrays.current[pod]]
        spare: Mask = np.logical_and.reduce(quota[:, None, :] - self._load > arrays.least_spare[:, pod, None, None])
        return spare

    def preference_rank(self, pod: int) -> Ints:
        """(placements, nodes); smaller is better."""
        arrays, nodes = self._prepared.arrays, len(self._prepared.arrays.nodes)
        preference_rank = np.empty((len(self._slots), nodes), dtype=np.int64)
        order = np.argsort(self._costs(pod), axis=1, kind="stable")
        np.put_along_axis(preference_rank, order, np.arange(nodes)[None, :], axis=1)
        if not arrays.unhappy[pod]:
            return preference_rank
        current, options = int(arrays.current[pod]), arrays.options
        here = self._worst(self._matched_load)[:, current]
        there = self._worst(self._matched_load + arrays.peak[:, pod, None, None])
        relieved = self._overloaded[current] & (here < 1 - options.headroom - TOLERANCE)
        group = np.where(there <= here[:, None] - options.relief + TOLERANCE, 1, 3)
        group[:, current] = np.where(relieved, 0, 2)
        grouped: Ints = preference_rank + nodes * group
        return grouped

    def _costs(self, pod: int) -> Floats:
        """(placements, nodes)"""
        costs, spread = self._prepared.preferences.costs(pod), self._prepared.arrays.default_spread
        if spread is None or not spread.applies[pod]:
            return np.broadcast_to(costs, (len(self._slots), len(costs)))
        spread_out: Floats = (costs + spread.cost(pod, self._where)).round(DECIMALS)
        return spread_out

    def put(self, pod: int, end: Ints) -> None:
        arrays, current = self._prepared.arrays, int(self._prepared.arrays.current[pod])
        self._where[:, pod] = end
        rows = np.flatnonzero(end != NOWHERE)
        self._free[:, rows, end[rows]] -= arrays.request[:, pod, None]
        self._load[:, rows, end[rows]] += arrays.peak[:, pod, None]
        self._slots[rows, end[rows]] -= 1
        if arrays.options.inertia > 0:
            self._matched_load[:, rows, end[rows]] += arrays.peak[:, pod, None]
            if current != NOWHERE:
                self._matched_load[:, :, current] -= arrays.peak[:, pod, None]

    def _worst(self, loads: Floats) -> Floats:
        worst: Floats = share_of_room(loads, self._prepared.arrays.allocatable[:, None, :]).max(axis=0)
        return worst


def _repeated(amounts: Floats, placements: int) -> Floats:
    return np.repeat(amounts[:, None, :], placements, axis=1)
