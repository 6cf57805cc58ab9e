"""Shared by all decoders: metadata, owners, errors, and the cache for parts that many objects have in common."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from reactor.cluster.decoding.quantity import parse_nanos, whole_amount
from reactor.cluster.records import Owner

V = TypeVar("V")

Time = Annotated[datetime, Meta(tz=True)]

KEPT_PREFIXES = (
    "rematch.io/",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "karpenter.sh/do-not-disrupt",
    "descheduler.alpha.kubernetes.io/",
    "kubernetes.io/config.mirror",
    "scheduling.k8s.io/group-name",
    "controller.kubernetes.io/pod-deletion-cost",
)
"""Annotations that Rematch reads. All others are dropped, last-applied configurations above all."""

_AT = re.compile(r"^(?P<problem>.*?) - at `\$(?P<path>.*)`$", re.DOTALL)
_ABSENT = (b"", b"null")
_NO_STRINGS: Mapping[str, str] = {}


class WrongField(ValueError):
    """A field with an invalid value."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}" if path else problem)


class WireOwner(Struct, gc=False):
    kind: str
    name: str
    uid: str = ""
    controller: bool | None = None


class WireMeta(Struct, rename="camel", gc=False):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    generation: int = 0
    labels: Raw = Raw(b"")
    annotations: Raw = Raw(b"")
    managed_fields: Raw = Raw(b"")
    owner_references: list[WireOwner] | None = None


class Memo(Generic[V]):
    """Decodes each distinct piece of JSON once, so that pods of one template share one value.

    A full cache is cleared: adjacent objects in a list mostly belong to the same template anyway.
    """

    __slots__ = ("_known", "_limit", "_make")

    def __init__(self, make: Callable[[bytes], V], limit: int = 16384) -> None:
        self._make = make
        self._limit = limit
        self._known: dict[bytes, V] = {}

    def of(self, raw: Raw, path: str) -> V:
        text = bytes(raw)
        value = self._known.get(text)
        if value is None:
            try:
                value = self._make(b"null" if text == b"" else text)
            except (WrongField, msgspec.ValidationError) as error:
                raise inside(path, error) from error
            if len(self._known) >= self._limit:
                self._known.clear()
            self._known[text] = value
        return value


def inside(path: str, error: WrongField | msgspec.ValidationError) -> WrongField:
    """The same error, with `path` before its own path."""
    wrong = error if isinstance(error, WrongField) else wrong_field(error)
    return WrongField(f"{path}{wrong.path}" if wrong.path.startswith("[") else join(path, wrong.path), wrong.problem)


def wrong_field(error: msgspec.DecodeError) -> WrongField:
    found = _AT.match(str(error))
    if found is None:
        return WrongField("", str(error))
    return WrongField(found["path"].removeprefix("."), found["problem"])


def join(path: str, tail: str) -> str:
    return f"{path}.{tail}" if path and tail else path or tail


def is_given(raw: Raw) -> bool:
    return bytes(raw) not in _ABSENT


def seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


_STRINGS = msgspec.json.Decoder(dict[str, str] | None)
_AMOUNTS = msgspec.json.Decoder(dict[str, str | int | float] | None)


def decode_strings(text: bytes) -> Mapping[str, str]:
    found = _STRINGS.decode(text) or {}
    return {sys.intern(key): sys.intern(value) for key, value in found.items()}


def decode_nanos(text: bytes) -> Mapping[str, int]:
    """A resource list, exact, in billionths; negative amounts are refused, as by the API."""
    amounts = {}
    for name, quantity in (_AMOUNTS.decode(text) or {}).items():
        try:
            amount = parse_nanos(quantity)
        except ValueError as error:
            raise WrongField(name, str(error)) from error
        if amount < 0:
            raise WrongField(name, f"{quantity!r} must not be negative")
        amounts[sys.intern(name)] = amount
    return amounts


def whole_amounts(nanos: Mapping[str, int]) -> Mapping[str, float]:
    return {name: whole_amount(name, amount) for name, amount in nanos.items()}


def decode_amounts(text: bytes) -> Mapping[str, float]:
    """A resource list as kube-scheduler counts it."""
    return whole_amounts(decode_nanos(text))


class MetaDecoder:
    """Decodes labels, annotations and owners; equal ones are shared."""

    def __init__(self) -> None:
        self._labels = Memo(decode_strings)
        self._owners: dict[str, Owner] = {}

    def labels(self, meta: WireMeta) -> Mapping[str, str]:
        return self._labels.of(meta.labels, "metadata.labels")

    def annotations(self, meta: WireMeta) -> Mapping[str, str]:
        """Not cached by their text: network plugins write each pod's address into it."""
        if not is_given(meta.annotations):
            return _NO_STRINGS
        try:
            found = _STRINGS.decode(meta.annotations) or {}
        except msgspec.ValidationError as error:
            raise inside("metadata.annotations", error) from error
        kept = {sys.intern(key): sys.intern(value) for key, value in found.items() if key.startswith(KEPT_PREFIXES)}
        return kept or _NO_STRINGS

    def owner(self, meta: WireMeta) -> Owner | None:
        for reference in meta.owner_references or ():
            if reference.controller:
                return self._shared(reference)
        return None

    def _shared(self, reference: WireOwner) -> Owner:
        owner = self._owners.get(reference.uid)
        if owner is None or owner.kind != reference.kind or owner.name != reference.name:
            if len(self._owners) >= 65536:
                self._owners.clear()
            owner = self._owners[reference.uid] = Owner(sys.intern(reference.kind), reference.name, reference.uid)
        return owner


def uid_of(meta: WireMeta) -> str:
    """Objects in a hand-written dump have no UID; there the name is used."""
    return meta.uid or (f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name)


def created(meta: WireMeta) -> float:
    return seconds(meta.creation_timestamp) or 0.0
