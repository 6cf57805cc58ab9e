"""What a watch tells, as values."""

from __future__ import annotations

from dataclasses import dataclass

from reactor.cluster.decoding.decoder import MalformedObject
from reactor.cluster.records import Record


@dataclass(frozen=True, slots=True)
class Upsert:
    """The object as it is now, new or changed."""

    record: Record


@dataclass(frozen=True, slots=True)
class Remove:
    """`key` as `key_of` gives it."""

    key: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing changed for us up to this version."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """An object that could not be read; what was known of it before stays."""

    malformed: MalformedObject


Change = Upsert | Remove | Bookmark | Skipped
