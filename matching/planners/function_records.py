"""Pods and nodes in KSE's form, for a user's function. Imported by its process, so it imports nothing else of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


def _by_key(self: object, key: str) -> object:
    try:
        return getattr(self, key)
    except AttributeError:
        raise KeyError(key) from None


@dataclass(frozen=True, slots=True)
class KsePod:
    name: str
    """The pod name where that is unique, else namespace/name."""
    namespace: str
    node: str | None
    metrics: Mapping[str, float]
    """cpu in millicores, memory in MB; other axes in their own unit."""

    __getitem__ = _by_key


@dataclass(frozen=True, slots=True)
class KseNode:
    name: str
    pods: tuple[KsePod, ...]
    """Only those that may move."""
    metrics: Mapping[str, float]
    """Use of the whole node."""
    allocatable: Mapping[str, float]

    __getitem__ = _by_key


Allocate = Callable[[list[KsePod], list[KseNode]], Mapping[str, str]]
