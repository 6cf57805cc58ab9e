"""Trains all predictors that learn: python -m predictors.train HISTORY MODELS [--seconds 60] [--mebibytes 1024]

A process of its own with the lowest priority, one thread, and limits for time and memory: training never slows the
controller down, and when it fails the models in use stay. HISTORY is a file of `save_history`.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from predictors.model_file import Description, save_models
from predictors.protocol import History, NotEnoughHistory, PredictorError, State, TrainedPredictor
from predictors.registry import known_predictors, load_predictor

_RESERVED_SHARE = 0.2
"""Of the time, for reading, features and writing."""


class HistoryFileError(PredictorError):
    """The file is not one of `save_history`."""


def training_command(history: Path, models: Path, seconds: float, mebibytes: int) -> tuple[list[str], dict[str, str]]:
    """For the process that starts it: the arguments, and the environment to add. Kill it after `seconds` and a bit."""
    command = [sys.executable, "-m", "predictors.train", str(history), str(models)]
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return [*command, "--seconds", f"{seconds:g}", "--mebibytes", str(mebibytes)], one_thread


def save_history(path: Path, history: History, minutes: Sequence[float], time: float) -> None:
    """`time` is that of the last column."""
    cut = np.zeros(history.values.shape, dtype=bool) if history.cut is None else history.cut
    with path.open("wb") as file:
        np.savez(
            file,
            allow_pickle=False,
            values=history.values,
            cut=cut,
            minutes=np.array(minutes, dtype=np.float64),
            step_and_time=np.array([history.step, time]),
        )


def train(
    history: History, minutes: Sequence[float], time: float, seconds: float
) -> tuple[Description, dict[str, State]]:
    """One predictor that finds too little to learn from does not keep the others from learning."""
    learners = [each for each in map(load_predictor, known_predictors()) if isinstance(each, TrainedPredictor)]
    states: dict[str, State] = {}
    failures: dict[str, str] = {}
    for learner in learners:
        try:
            states[learner.name] = learner.fit(history, minutes, seconds / len(learners)).state()
        except NotEnoughHistory as error:
            failures[learner.name] = str(error)
    return Description(time, history.step, list(minutes), list(states), failures), states


def _load_history(path: Path) -> tuple[History, list[float], float]:
    try:
        with np.load(path, allow_pickle=False) as file:
            step, time = file["step_and_time"].tolist()
            return History(file["values"], step, file["cut"]), file["minutes"].tolist(), time
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise HistoryFileError(f"{path} is no file of predictors.train.save_history") from error


def _limit(seconds: float, mebibytes: int) -> None:
    os.nice(19)
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (mebibytes * 2**20, mebibytes * 2**20))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("models", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0, help="most CPU time")
    parser.add_argument("--mebibytes", type=int, default=1024, help="most memory")
    arguments = parser.parse_args()
    _limit(arguments.seconds, arguments.mebibytes)
    try:
        history, minutes, time = _load_history(arguments.history)
        description, states = train(history, minutes, time, arguments.seconds * (1 - _RESERVED_SHARE))
    except PredictorError as error:
        sys.exit(f"error: {error}")
    save_models(arguments.models, description, states)
    for name, failure in description.failures.items():
        print(f"{name}: not trained: {failure}", file=sys.stderr)


if __name__ == "__main__":
    main()
