"""Training as a process: within its limits, stored, loaded again; damaged files are refused."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from predictors import train
from predictors.boosted import BoostedValue
from predictors.model_file import Description, ModelFileError, load_models, save_models
from predictors.protocol import History
from predictors.testing import random_load
from predictors.train import save_history, training_command
from predictors.trained import load_trained
from predictors.trees import DamagedTrees

MINUTES = (5.0, 75.0)
DESCRIPTION = Description(1000.0, 300.0, [5.0], ["boosted"], {})


def run(tmp_path: Path, history: History, mebibytes: int = 1024) -> subprocess.CompletedProcess[str]:
    save_history(tmp_path / "history.npz", history, MINUTES, 1e9)
    command, environment = training_command(tmp_path / "history.npz", tmp_path / "models.npz", 20.0, mebibytes)
    return subprocess.run(
        command, env={**os.environ, **environment}, timeout=50, capture_output=True, text=True, check=False
    )


def test_models_are_trained_stored_and_loaded(tmp_path: Path) -> None:
    history = History(random_load(np.random.default_rng(1), 20).astype(np.float32), 300.0)
    assert run(tmp_path, history).returncode == 0
    description, states = load_models(tmp_path / "models.npz")
    assert (description.trained_at, description.step, list(description.minutes)) == (1e9, 300.0, [5.0, 75.0])
    assert set(states) == {"boosted", "boosted-peak"}
    _, trained = load_trained(tmp_path / "models.npz", 300.0)
    predicted = trained["boosted"].predict(history, MINUTES)
    assert np.isfinite(predicted).any(axis=0).all()


def test_a_young_cluster_has_no_models_and_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, without the limits of the one that trains."""
    history, models = tmp_path / "history.npz", tmp_path / "models.npz"
    save_history(history, History(np.ones((3, 4), dtype=np.float32), 300.0), MINUTES, 1e9)
    monkeypatch.setattr("sys.argv", ["train", str(history), str(models)])
    monkeypatch.setattr(train, "_limit", lambda _seconds, _mebibytes: None)
    train.main()
    description, states = load_models(models)
    assert states == {}
    assert set(description.failures) == {"boosted", "boosted-peak"}
    assert "not trained" in capsys.readouterr().err


def test_too_little_memory_fails_and_leaves_the_old_models(tmp_path: Path) -> None:
    save_models(tmp_path / "models.npz", DESCRIPTION, {})
    before = (tmp_path / "models.npz").read_bytes()
    large = History(np.ones((4000, 2000), dtype=np.float32), 300.0)
    assert run(tmp_path, large, mebibytes=40).returncode != 0
    assert (tmp_path / "models.npz").read_bytes() == before


def test_files_that_are_not_models_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "models.npz"
    with pytest.raises(ModelFileError):
        load_models(path)
    np.savez(path, allow_pickle=True, description=np.array([{"an": "object"}], dtype=object))
    with pytest.raises(ModelFileError):
        load_models(path)
    save_models(path, DESCRIPTION, {"boosted": {"a": np.arange(1000)}})
    whole = path.read_bytes()
    for damaged in (b"", b"PK", whole[: len(whole) // 2], whole[:3000] + b"\xff" * 8 + whole[3008:]):
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            load_models(path)


def test_a_file_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("predictors.model_file.FORMAT", 99)
    save_models(tmp_path / "models.npz", DESCRIPTION, {})
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="99"):
        load_models(tmp_path / "models.npz")


def test_models_of_another_rhythm_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "models.npz"
    save_models(path, DESCRIPTION, {})
    with pytest.raises(ModelFileError, match="every 300 s"):
        load_trained(path, 60.0)
    for name, state in (("prophet", {}), ("last-value", {}), ("boosted", {"5.left": np.arange(3)})):
        save_models(path, replace(DESCRIPTION, predictors=[name]), {name: state})
        with pytest.raises(ModelFileError):
            load_trained(path, 300.0)


def test_a_model_of_wrong_arrays_is_refused() -> None:
    with pytest.raises(DamagedTrees):
        BoostedValue().restore({"5.left": np.arange(3)})
