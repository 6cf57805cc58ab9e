"""The paper's own table: rematches until stable and dumped pods, by rate and threshold."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    rematches: int
    dumped: int = 0


_NONE = Published(0)
PAPER_TABLE: dict[int, dict[float, Published]] = {
    50: {0.7: _NONE, 0.8: _NONE, 0.9: _NONE},
    60: {0.7: _NONE, 0.8: _NONE, 0.9: _NONE},
    70: {0.7: _NONE, 0.8: _NONE, 0.9: _NONE},
    80: {0.7: _NONE, 0.8: _NONE, 0.9: Published(1)},
    90: {0.7: _NONE, 0.8: Published(1), 0.9: Published(1)},
    100: {0.7: _NONE, 0.8: _NONE, 0.9: _NONE},
    110: {0.7: Published(1), 0.8: Published(2), 0.9: Published(1)},
    120: {0.7: Published(1), 0.8: _NONE, 0.9: _NONE},
    130: {0.7: Published(1), 0.8: Published(9, 4), 0.9: Published(8, 5)},
    140: {0.7: _NONE, 0.8: Published(1, 6), 0.9: Published(2, 5)},
    150: {0.7: _NONE, 0.8: _NONE, 0.9: _NONE},
}


def paper_totals(threshold: float) -> Published:
    """Over all rates; the paper does not say whether a pod that is dumped at two rates is the same one."""
    rows = [row[threshold] for row in PAPER_TABLE.values()]
    return Published(sum(row.rematches for row in rows), sum(row.dumped for row in rows))
