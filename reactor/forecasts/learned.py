"""What the forecasts have learned of each series as bytes: a zip of plain arrays, never code."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

import numpy as np

from predictors.forecasting import OtherState
from predictors.protocol import State

MOST_BYTES = 256 * 2**20
"""Unpacked; a small document could unpack to anything."""


def to_bytes(shards: Sequence[State]) -> bytes:
    """Of all shards together: after a restart a series may be in another one. Half the digits are enough."""
    file = io.BytesIO()
    named = [shard["keys"] != "" for shard in shards]
    joined = {
        name: np.concatenate([shard[name][here] for shard, here in zip(shards, named, strict=True)])
        for name in shards[0]
    }
    arrays = {name: array.astype(np.float32) if array.dtype == np.float64 else array for name, array in joined.items()}
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def from_bytes(document: bytes) -> State:
    """Raises OtherState."""
    try:
        with zipfile.ZipFile(io.BytesIO(document)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
                raise OtherState(f"it unpacks to more than {MOST_BYTES} bytes")
        with np.load(io.BytesIO(document), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise OtherState(f"it cannot be read: {error}") from error
