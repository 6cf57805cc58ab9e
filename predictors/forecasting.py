"""The one automatic selection: for each series and horizon a value, a peak, and how far to trust them.

`Forecasting` is told the history again and again. It remembers what it said, compares it with what came, and so follows
the model that errs least and keeps the promise of its bounds. Pods and nodes are series alike: the peaks of a node's
pods do not add up to the peak of the node, see `predictors.nodes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from predictors.calibration import Calibration, new_calibration
from predictors.protocol import Floats, History, Predictor, PredictorError, State
from predictors.recent import latest
from predictors.selection import Selection, new_selection
from predictors.series_rows import former_rows, moved

_KEPT = ("errors", "numbers", "offset", "spread", "resolved", "promise")


class OtherState(PredictorError):
    """The state of other forecasts."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Arrays are series by horizons."""

    values: Floats
    models: NDArray[np.intp]
    """Which model each value is from, as an index of `Forecasting.models`."""
    forecasts: Floats
    """What every model says: series by models by horizons."""
    peaks: Floats
    peaks_before: Floats
    """What the model says before calibration."""
    calibrated: NDArray[np.bool_]
    """Whether the peak is a bound that has been checked often enough to be trusted as one."""
    at_least: NDArray[np.bool_]
    """Per series: demand is being cut right now, so all of this is a lower bound."""


@dataclass(frozen=True, slots=True)
class _Said:
    """At some time, about its horizons."""

    time: float
    open: NDArray[np.bool_]
    """The horizons that are still to come."""
    values: Floats
    """Series by models by horizons."""
    peaks: Floats
    bounds: Floats


@dataclass(slots=True)
class Forecasting:
    """For one axis. `models` begin with the last value; `peaks` are asked in turn until one has an answer."""

    models: Sequence[Predictor]
    peaks: Sequence[Predictor]
    minutes: Sequence[float]
    selection: Selection = field(init=False)
    calibration: Calibration = field(init=False)
    _keys: Sequence[str] = field(init=False, default=())
    _said: list[_Said] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.selection = new_selection(tuple(model.name for model in self.models), 0, len(self.minutes))
        self.calibration = new_calibration(0, len(self.minutes))

    def advance(self, keys: Sequence[str], history: History, time: float, promises: Floats | None = None) -> Outlook:
        """`time` is that of the last column; a row per key. Series may come, go and change places. `promises`:
        the share of the windows in which the peak of each series shall hold, by default 95 %."""
        self._follow(keys)
        if promises is not None:
            self.calibration = self.calibration.promising(promises)
        self._compare(history, time)
        forecasts = np.stack([model.predict(history, self.minutes) for model in self.models], axis=1)
        values, chosen = self.selection.choose(forecasts)
        said = self._peaks(history)
        now = latest(history.values)
        bounds = self.calibration.bound(said, now)
        self._said.append(_Said(time, np.ones(len(self.minutes), dtype=bool), forecasts, said, bounds))
        at_least = np.zeros(len(keys), dtype=bool) if history.cut is None else history.cut[:, -1].copy()
        return Outlook(values, chosen, forecasts, bounds, said, self.calibration.calibrated(), at_least)

    def withdraw(self, keys: Sequence[str]) -> None:
        """What was said of these is not compared with what comes: they are made of other parts now."""
        rows = [row for row, key in enumerate(self._keys) if key in set(keys)]
        for said in self._said:
            for part in (said.values, said.peaks, said.bounds):
                part[rows] = np.nan

    def state(self) -> State:
        """What was learned of each series, to go on with after a restart. What has not come yet is forgotten."""
        kept = (self.selection.errors, self.selection.numbers, *astuple(self.calibration))
        return {"keys": np.array(self._keys, dtype=np.str_), **dict(zip(_KEPT, kept, strict=True))}

    def restore(self, state: State) -> None:
        """Raises OtherState for one of other models or horizons, or a damaged one."""
        models, horizons = len(self.models), len(self.minutes)
        try:
            keys = state["keys"].tolist()
            kept = [np.asarray(state[name], dtype=np.float64) for name in _KEPT]
        except (KeyError, ValueError) as error:
            raise OtherState(f"the state of forecasts cannot be read: {error}") from error
        expected = [(len(keys), models, horizons)] * 2 + [(len(keys), horizons)] * 4
        if [each.shape for each in kept] != expected:
            raise OtherState(f"the state is not that of {models} models and {horizons} horizons")
        self._keys, self._said = keys, []
        self.selection = replace(self.selection, errors=kept[0], numbers=kept[1])
        self.calibration = Calibration(*kept[2:])

    def _peaks(self, history: History) -> Floats:
        said = np.full((history.values.shape[0], len(self.minutes)), np.nan)
        for model in self.peaks:
            missing = np.isnan(said).any(axis=1)
            if not missing.any():
                break
            part = History(history.values[missing], history.step)
            said[missing] = np.where(np.isnan(said[missing]), model.predict(part, self.minutes), said[missing])
        return said

    def _follow(self, keys: Sequence[str]) -> None:
        if list(keys) == list(self._keys):
            return
        former = former_rows(self._keys, keys)
        self._keys = list(keys)
        self.selection = self.selection.rows(former)
        self.calibration = self.calibration.rows(former)
        self._said = [
            _Said(
                each.time, each.open, *(moved(part, former, np.nan) for part in (each.values, each.peaks, each.bounds))
            )
            for each in self._said
        ]

    def _compare(self, history: History, time: float) -> None:
        """Everything said that has come true or not by now; what the history no longer covers is forgotten."""
        steps = [history.steps(horizon) for horizon in self.minutes]
        for said in self._said:
            passed = round((time - said.time) / history.step)
            due = said.open & (np.array(steps) <= passed)
            if due.any():
                self._resolve(history, said, passed, due)
                said.open[due] = False
        self._said = [said for said in self._said if said.open.any()]

    def _resolve(self, history: History, said: _Said, passed: int, due: NDArray[np.bool_]) -> None:
        shape = (history.values.shape[0], len(self.minutes))
        actual, came, cut = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        start = history.values.shape[1] - passed
        for column in np.flatnonzero(due).tolist():
            end = start + history.steps(self.minutes[column])
            if start < 0:
                continue
            window = history.values[:, start:end]
            was_cut = np.zeros(window.shape, dtype=bool) if history.cut is None else history.cut[:, start:end]
            actual[:, column] = np.where(was_cut[:, -1], np.nan, window[:, -1])
            came[:, column] = window.max(axis=1)
            cut[:, column] = was_cut.any(axis=1)
        self.selection = self.selection.observe(said.values, actual)
        self.calibration = self.calibration.observe(said.peaks, said.bounds, came, cut)
