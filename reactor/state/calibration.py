"""The curve of probe failures by node load, the probes it was fitted to, and how well it predicted them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from matching.failure_curve import FailureCurve
from predictors.failure_curve_fit import CurveParameters, fit_failure_curve
from reactor.signals.probe_counts import decay
from storage.rows import LoadBinRow

Floats = NDArray[np.float64]

BINS = 30
BIN_WIDTH = 0.05
"""Share of what a node can give. The last bin takes everything above, too."""
HALF_LIFE = 14 * 24 * 3600.0
"""A probe counts half after two weeks: applications and their probes change."""
PROBES, FAILURES, LOAD, EXPECTED = range(4)
COLUMNS = 4
PRIOR = FailureCurve()


@dataclass(frozen=True, slots=True)
class PredictedFailures:
    """How many probes there were, and which shares of them were expected to fail and did fail."""

    probes: float
    expected: float
    observed: float


def bins_of(loads: Floats) -> NDArray[np.intp]:
    """NaN is in the first bin: the caller gives it no weight."""
    return np.clip(np.nan_to_num(loads) / BIN_WIDTH, 0, BINS - 1).astype(np.intp)


class Calibration:
    def __init__(self) -> None:
        self.curve = PRIOR
        self._table = np.zeros((BINS, COLUMNS))
        self._at = 0.0

    @property
    def table(self) -> Floats:
        """A copy: a row per bin, with the number of probes, how many failed, the sum of the loads, and how many were
        expected to fail."""
        return self._table.copy()

    def add(self, counted: Floats, now: float) -> None:
        self._decay(now)
        self._table += counted

    def predicted_failures(self) -> PredictedFailures | None:
        """None before any probe was counted."""
        probes, failures, _, expected = self._table.sum(axis=0).tolist()
        return PredictedFailures(probes, expected / probes, failures / probes) if probes > 0 else None

    def restore(self, rows: Iterable[LoadBinRow], now: float) -> None:
        """Rows that make no sense are left out."""
        for row in rows:
            values = np.array([row.probes, row.failures, row.load, row.expected])
            if 0 <= row.bin < BINS and np.isfinite(values).all() and (values >= 0).all():
                self._table[row.bin] = values * decay(now - row.at, HALF_LIFE)
        self._at = now

    def rows(self, now: float) -> list[LoadBinRow]:
        self._decay(now)
        values = enumerate(self._table.tolist())
        return [
            LoadBinRow(at, row[PROBES], row[FAILURES], row[LOAD], row[EXPECTED], now)
            for at, row in values
            if row[PROBES] > 0
        ]

    def _decay(self, now: float) -> None:
        if now > self._at:
            self._table *= decay(now - self._at, HALF_LIFE)
            self._at = now


def fitted_curve(table: Floats) -> FailureCurve:
    """The prior where nothing was counted."""
    used = table[table[:, PROBES] > 0]
    loads = used[:, LOAD] / used[:, PROBES]
    prior = CurveParameters(**asdict(PRIOR))
    return FailureCurve(**asdict(fit_failure_curve(loads, used[:, PROBES], used[:, FAILURES], prior)))
