"""Trained predictors in one file: a zip of plain arrays and a description, never code. Whoever can write the file can
make forecasts wrong, but not run anything."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import PredictorError, State

FORMAT = 1
MOST_BYTES = 256 * 2**20
"""Unpacked; a small file could unpack to anything."""
_DESCRIPTION = "description"


class ModelFileError(PredictorError):
    """The file cannot be used: missing, damaged, of another version, or not a file of models. Train again."""


@dataclass(frozen=True, slots=True)
class Description:
    trained_at: float
    """Unix time of the last sample that was learned from."""
    step: float
    """Seconds. A model is not used for samples of another rhythm."""
    minutes: Sequence[float]
    predictors: Sequence[str]
    failures: Mapping[str, str]
    """Why a predictor could not be trained."""


def save_models(path: Path, description: Description, states: Mapping[str, State]) -> None:
    """Readers see the old file or the new one, never a half."""
    arrays = {f"{name}/{key}": np.asarray(array) for name, state in states.items() for key, array in state.items()}
    text = json.dumps({"format": FORMAT, "checksum": _checksum(arrays), **asdict(description)})
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        np.savez(file, allow_pickle=False, **{_DESCRIPTION: np.frombuffer(text.encode(), dtype=np.uint8)}, **arrays)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def load_models(path: Path) -> tuple[Description, dict[str, State]]:
    """The arrays by predictor, for its `restore`. Raises ModelFileError."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST_BYTES:
            raise ModelFileError(f"{path} unpacks to {size} bytes; models have at most {MOST_BYTES}")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        text = json.loads(arrays.pop(_DESCRIPTION).tobytes())
        version, checksum = text.pop("format"), text.pop("checksum")
        description = Description(**text)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise ModelFileError(f"{path} cannot be read as models: {error}") from error
    if version != FORMAT:
        raise ModelFileError(f"{path} has format {version!r}, and this version reads {FORMAT}")
    if checksum != _checksum(arrays):
        raise ModelFileError(f"{path} is damaged: the checksum differs")
    return description, {name: _of(name, arrays) for name in description.predictors}


def _of(predictor: str, arrays: Mapping[str, NDArray[np.generic]]) -> State:
    prefix = f"{predictor}/"
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _checksum(arrays: Mapping[str, NDArray[np.generic]]) -> int:
    total = 0
    for name, array in sorted(arrays.items()):
        header = f"{name} {array.dtype.str} {array.shape}".encode()
        total = crc32(np.ascontiguousarray(array).tobytes(), crc32(header, total))
    return total
