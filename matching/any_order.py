"""An order of a few moves in which rules between pods allow each, found by trying all orders.

The greedy order of `matching.order` does what is possible now and never waits with a move for another one's sake. That
fails only where rules between pods interlock, which is rare, so all orders are tried only for so few moves.
"""

from __future__ import annotations

from collections.abc import Sequence

from matching.arrays import NOWHERE, Arrays, Ints
from matching.ledger import Ledger, before_the_moves

FEW = 5


def any_order(arrays: Arrays, pods: Sequence[int], at: Ints, *, with_room: bool) -> tuple[int, ...] | None:
    """None when there is none, or when there are too many moves to try."""
    if len(pods) > FEW:
        return None
    return _extended(arrays, before_the_moves(arrays, at), tuple(pods), at, with_room)


def _extended(
    arrays: Arrays, ledger: Ledger, left: tuple[int, ...], at: Ints, with_room: bool
) -> tuple[int, ...] | None:
    if not left:
        return ()
    for pod in left:
        home, target = int(arrays.home[pod]), int(at[pod])
        if (with_room and not ledger.has_room_on(pod, target)) or not ledger.between.allows(pod)[target]:
            continue
        _shift(ledger, pod, home, target)
        rest = _extended(arrays, ledger, tuple(each for each in left if each != pod), at, with_room)
        _shift(ledger, pod, target, home)
        if rest is not None:
            return (pod, *rest)
    return None


def _shift(ledger: Ledger, pod: int, source: int, target: int) -> None:
    if source != NOWHERE:
        ledger.take(pod, source)
    if target != NOWHERE:
        ledger.put(pod, target)
    else:
        ledger.between.take_out(pod)
