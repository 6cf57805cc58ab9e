"""A store that has nearly its largest size, so that a soak shows what happens at the bound."""

from __future__ import annotations

from pathlib import Path

from storage.rows import SampleRow
from storage.store import Store

_BATCH = 2_000
_SECONDS_BETWEEN = 15.0


async def fill_store(path: Path, used_bytes: int, now: float) -> None:
    """Adds usage samples of pods that are gone, the newest first, until the rows take so many bytes."""
    async with await Store.open(path) as store:
        at = now
        while await store.used_bytes() < used_bytes:
            at -= _SECONDS_BETWEEN
            store.add_samples(*(_sample(at, number) for number in range(_BATCH)))
            await store.flush()


def _sample(at: float, number: int) -> SampleRow:
    uid = f"{number:08x}-0000-4000-8000-{number:012x}"
    return SampleRow(at, "pod", uid, number / 1000, number * 2.0**20, "soak")
