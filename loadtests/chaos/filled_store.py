"""A store that has nearly its largest size, so that a soak shows what happens at the bound."""

from __future__ import annotations

import os
from pathlib import Path

from storage.rows import ChunkRow
from storage.store import Store

_BLOCKS = 200
_BYTES = 8_000
_STEP = 3600


async def fill_store(path: Path, used_bytes: int, now: float) -> None:
    """Adds usage of blocks that are gone, the newest first, until the rows take so many bytes."""
    async with await Store.open(path) as store:
        start = int(now)
        while await store.used_bytes() < used_bytes:
            start -= _STEP
            store.add_chunks(*(ChunkRow(300, start, -block - 1, os.urandom(_BYTES)) for block in range(_BLOCKS)))
            await store.flush()
