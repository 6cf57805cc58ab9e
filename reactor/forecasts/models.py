"""The predictors in use, and the files of those that are trained: loaded again, or set aside when they cannot be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from predictors.model_file import ModelFileError
from predictors.protocol import Predictor, TrainedPredictor
from predictors.registry import load_predictor
from predictors.trained import load_trained
from reactor.history.levels import FIVE_MINUTES, Axis
from reactor.settings.model import PeakSource

log = structlog.get_logger(__name__)

TRAINED_AXES = (Axis.CPU, Axis.MEMORY)
_VALUES = ("last-value", "smoothing", "seasonal", "ridge", "boosted")
_COLD_START = "sigma-or-percentile"


@dataclass(frozen=True, slots=True)
class Models:
    """Of one axis."""

    trained: Mapping[str, TrainedPredictor] = field(default_factory=dict)
    trained_at: float | None = None

    def values(self) -> list[Predictor]:
        return [self._named(name) for name in _VALUES]

    def peaks(self, estimator: PeakSource) -> Sequence[Predictor]:
        """The chosen one, and one that has an answer to anything. `history` needs no forecast of a peak: the
        boosted one is shown all the same."""
        chosen = PeakSource.BOOSTED_PEAK if estimator is PeakSource.HISTORY else estimator
        return [self._named(chosen), load_predictor(_COLD_START)]

    def _named(self, name: str) -> Predictor:
        return self.trained.get(name) or load_predictor(name)


def model_file(beginning: Path, axis: Axis) -> Path:
    return beginning.with_name(f"{beginning.name}.models-{axis.label}")


def load(path: Path) -> Models:
    """Untrained ones if there is no file. One that is damaged or of another version is set aside: the forecasts go on
    without it, and the next training makes a new one."""
    if not path.exists():
        return Models()
    try:
        description, trained = load_trained(path, FIVE_MINUTES.step)
    except ModelFileError as error:
        problem = str(error)
    else:
        return Models(trained, description.trained_at)
    aside = _aside(path)
    path.replace(aside)
    log.error("the trained models cannot be used; they are set aside", set_aside=str(aside), error=problem)
    return Models()


def _aside(path: Path) -> Path:
    number = 1
    while path.with_name(f"{path.name}.damaged-{number}").exists():
        number += 1
    return path.with_name(f"{path.name}.damaged-{number}")
