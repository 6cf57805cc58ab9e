"""Shrinks a cluster to the fewest objects and fields that still show a difference."""

from __future__ import annotations

import copy
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from loadtests.same_plans.draw import Json

Check = Callable[[Sequence[Json]], Awaitable[bool]]
"""Whether a smaller cluster still shows it; one that the API server refuses does not."""
Path = tuple[str | int, ...]
_KEPT = frozenset({("kind",), ("apiVersion",), ("metadata",), ("metadata", "name"), ("metadata", "uid")})


async def minimise(items: Sequence[Json], still_shows: Check, *, seconds: float = 120.0) -> list[Json]:
    """The smallest cluster found in that time."""
    shrinking = _Shrinking(list(items), still_shows, time.monotonic() + seconds)
    while await shrinking.drop_objects() or await shrinking.drop_fields():
        pass
    return shrinking.items


class _Shrinking:
    def __init__(self, items: list[Json], still_shows: Check, until: float) -> None:
        self.items = items
        self._still_shows = still_shows
        self._until = until

    async def drop_objects(self) -> bool:
        """Many at once first, then one by one."""
        before = len(self.items)
        size = max(1, len(self.items) // 2)
        while size >= 1:
            start = 0
            while start < len(self.items):
                smaller = self.items[:start] + self.items[start + size :]
                if not await self._take(smaller):
                    start += size
            size //= 2
        return len(self.items) < before

    async def drop_fields(self) -> bool:
        """Whole branches first: what is inside them is then not looked at."""
        dropped = False
        for number in range(len(self.items)):
            paths = list(_paths(self.items[number]))
            gone: list[Path] = []
            for path in paths:
                if any(path[: len(parent)] == parent for parent in gone):
                    continue
                smaller = [*self.items]
                smaller[number] = _without(self.items[number], path)
                if await self._take(smaller):
                    dropped = True
                    gone.append(path)
        return dropped

    async def _take(self, smaller: list[Json]) -> bool:
        if not smaller or time.monotonic() > self._until or not await self._still_shows(smaller):
            return False
        self.items = smaller
        return True


def _paths(value: Any, prefix: Path = ()) -> Iterator[Path]:
    """Outer ones first. List elements come from the end, so that dropping one leaves the paths of the others valid."""
    children: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(reversed(list(enumerate(value))))
    for key, child in children:
        path = (*prefix, key)
        if path not in _KEPT:
            yield path
        yield from _paths(child, path)


def _without(item: Json, path: Path) -> Json:
    smaller = copy.deepcopy(item)
    inner: Any = smaller
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return smaller
