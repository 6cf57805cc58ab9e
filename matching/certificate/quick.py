"""Plain pods asked by a compiled loop: the same sums and comparisons as in `wishes` and `room`, number by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from matching.certificate.layout import Above, Facts, Run
from matching.certificate.room import Room
from matching.certificate.view import NOWHERE, Flags, Ints, View
from matching.certificate.wishes import Wishes

if TYPE_CHECKING:
    from matching.certificate.blocking import Allowed

_ANYWHERE = np.zeros(0, dtype=bool)


class Quick:
    def __init__(self, view: View, wishes: Wishes, room: Room, allowed: Allowed) -> None:
        from matching.certificate.kernel import count_blocking

        self._count = count_blocking
        running = view.home != NOWHERE
        away = running & (view.end != view.home)
        stays = np.ones(len(view.pods), dtype=bool)
        for row in np.flatnonzero(away & _has_hostile_home(view)).tolist():
            stays[row] = allowed.at_home(row)
        self._facts = Facts(
            usage=view.usage,
            request=view.request,
            peak=view.peak,
            home=view.home,
            end=view.end,
            welcome=wishes.welcome,
            stays=stays,
            kind=allowed.kind,
            come=allowed.all_come(),
            measured=allowed.measured,
            untouched=wishes.untouched,
            least=wishes.room.min(axis=1),
            most=wishes.room.max(axis=1),
            inertia=float(view.options.inertia),
            after=wishes.after,
        )
        self._squares, self._candidates = np.zeros(len(view.nodes)), np.zeros(len(view.nodes), dtype=bool)
        self._above = Above(
            room.by_request,
            room.by_peak,
            room.without_headroom,
            wishes.room,
            room.slots,
            wishes.used,
            wishes.load,
        )

    def count(self, rows: range, among: Flags | None, counts: Ints, named: Ints) -> None:
        """Adds to the counts of each node and to the first pods named for it. `among`: the nodes that rules between
        pods let the last of those pods join."""
        allowed = _ANYWHERE if among is None else among
        run = Run(rows.start, rows.stop, among is not None, allowed, self._squares, self._candidates)
        self._count(self._facts, self._above, run, counts, named)


def _has_hostile_home(view: View) -> Flags:
    hostile = [at for at, node in enumerate(view.nodes) if any(each.effect == "NoExecute" for each in node.taints)]
    return np.isin(view.home, hostile)
