"""The calibration of the failure curve: observed against expected failures by load."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from matching.failure_curve import FailureCurve
from reactor.record.calibration_summary import CalibrationSummary
from reactor.state.calibration import BIN_WIDTH, BINS, EXPECTED, FAILURES, LOAD, PRIOR, PROBES, Floats
from reactor.web.view import CalibrationView, CurveLine, LoadBin

_LOADS = np.round(np.arange(0.0, BINS * BIN_WIDTH + 0.001, 0.02), 2)
_LEAST_PROBES = 0.5
"""A bin with fewer is empty: its probes have faded."""


def calibration_view(table: Floats, curve: FailureCurve, summary: CalibrationSummary) -> CalibrationView:
    bins = [_bin(at, row) for at, row in enumerate(table.tolist()) if row[PROBES] >= _LEAST_PROBES]
    return CalibrationView(summary, str(summary), tuple(bins), tuple(_LOADS.tolist()), _line(curve), _line(PRIOR))


def _bin(at: int, row: list[float]) -> LoadBin:
    begin, end = round(at * BIN_WIDTH, 2), round((at + 1) * BIN_WIDTH, 2)
    probes = row[PROBES]
    return LoadBin(begin, end, row[LOAD] / probes, probes, row[FAILURES] / probes, row[EXPECTED] / probes)


def _line(curve: FailureCurve) -> CurveLine:
    return CurveLine(**asdict(curve), probabilities=tuple(curve.probabilities(_LOADS).tolist()))
