"""Predictors by name. Any package can add one through the entry-point group `rematch.predictors`."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from predictors.protocol import Predictor, PredictorError

GROUP = "rematch.predictors"


class UnknownPredictor(PredictorError):
    """No package registers this name, or what it registers is no predictor."""


def known_predictors() -> tuple[str, ...]:
    return tuple(sorted({entry.name for entry in entry_points(group=GROUP)}))


def load_predictor(name: str) -> Predictor:
    """Untrained, with its default parameters. Raises UnknownPredictor."""
    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        raise UnknownPredictor(f"unknown predictor {name!r}; known are {', '.join(known_predictors()) or 'none'}")
    try:
        made = found.load()()
    except (ImportError, AttributeError, TypeError) as error:
        raise UnknownPredictor(f"predictor {name!r} cannot be loaded from {found.value}: {error}") from error
    missing = [what for what in ("name", "target", "predict") if not hasattr(made, what)]
    if missing:
        raise UnknownPredictor(f"predictor {name!r}: {found.value} lacks {', '.join(missing)}")
    return cast(Predictor, made)
