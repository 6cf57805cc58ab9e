"""The trained predictors of a file, ready to predict."""

from __future__ import annotations

from pathlib import Path

from predictors.model_file import Description, ModelFileError, load_models
from predictors.protocol import TrainedPredictor
from predictors.registry import UnknownPredictor, load_predictor
from predictors.trees import DamagedTrees


def load_trained(path: Path, step: float) -> tuple[Description, dict[str, TrainedPredictor]]:
    """By name. `step` is that of the samples now: a model that was trained in another rhythm is not used.

    Raises ModelFileError.
    """
    description, states = load_models(path)
    if description.step != step:
        raise ModelFileError(f"{path} was trained on samples every {description.step:g} s; now it is {step:g} s")
    trained = {}
    for name, state in states.items():
        try:
            predictor = load_predictor(name)
            if not isinstance(predictor, TrainedPredictor):
                raise ModelFileError(f"{path} has a state for {name}, which does not learn")
            trained[name] = predictor.restore(state)
        except (UnknownPredictor, DamagedTrees, ValueError) as error:
            raise ModelFileError(f"{path} cannot be used: {error}") from error
    return description, trained
