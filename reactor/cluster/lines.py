"""Lines out of chunks, however long: a watch line can hold an object of several MiB."""

from __future__ import annotations

from collections.abc import AsyncIterator

from reactor.errors import Unreachable


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines only. An end in the middle of one raises: the rest was lost on the way."""
    pending: list[bytes] = []
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        pending.append(first)
        for part in others:
            line = b"".join(pending)
            pending = [part]
            if line.strip():
                yield line
    if b"".join(pending).strip():
        raise Unreachable("the answer ends in the middle of a line")
