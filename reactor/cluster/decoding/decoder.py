"""One entry to all decoders: by kind, with a wrong object turned into a report instead of a stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Raw, Struct

from reactor.cluster.decoding import objects
from reactor.cluster.decoding.common import MetaDecoder, WrongField, wrong_field
from reactor.cluster.decoding.events import decode_event
from reactor.cluster.decoding.nodes import NodeDecoder
from reactor.cluster.decoding.pods import PodDecoder
from reactor.cluster.kinds import WORKLOAD_KINDS, Kind
from reactor.cluster.records import Record


@dataclass(frozen=True, slots=True)
class MalformedObject:
    """An object that could not be read: which one, as far as it is legible, and what is wrong with it."""

    kind: Kind
    key: str
    """As `key_of` of the record it would have been; empty when its name is not legible, either."""
    name: str
    path: str
    problem: str

    def __str__(self) -> str:
        place = f" {self.path}:" if self.path else ""
        return f"{self.kind.object_kind} {self.name}:{place} {self.problem}"


class _LegibleMeta(Struct, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name


class _Legible(Struct, gc=False):
    metadata: _LegibleMeta


_LEGIBLE = msgspec.json.Decoder(_Legible)


def key_of(kind: Kind, record: Record) -> str:
    """What identifies a record among its kind: the UID where a name can come again as another object."""
    return record.uid if kind.namespaced else record.name


class Decoder:
    """Holds what records have in common, so use one for all objects of one cluster."""

    def __init__(self) -> None:
        metas = MetaDecoder()
        self._decoders: Mapping[Kind, Callable[[bytes | Raw], Record]] = {
            Kind.PODS: PodDecoder(metas).decode,
            Kind.NODES: NodeDecoder(metas).decode,
            Kind.EVENTS: decode_event,
            **{kind: objects.workload_decoder(kind.object_kind, metas) for kind in WORKLOAD_KINDS},
            Kind.PDBS: objects.decode_budget,
            Kind.NAMESPACES: objects.namespace_decoder(metas),
            Kind.PVCS: objects.decode_claim,
            Kind.PVS: objects.decode_volume,
            Kind.CONFIG_MAPS: objects.decode_config_map,
        }

    def decode(self, kind: Kind, text: bytes | Raw) -> Record | MalformedObject:
        """Never raises for what `text` holds: one wrong object must not stop the others."""
        try:
            return self._decoders[kind](text)
        except WrongField as error:
            return self._report(kind, text, error)
        except msgspec.DecodeError as error:
            return self._report(kind, text, wrong_field(error))
        except UnicodeDecodeError:
            return self._report(kind, text, WrongField("", "is not valid UTF-8"))

    def key(self, kind: Kind, text: bytes | Raw) -> str:
        """The key of an object of which nothing else matters; empty when not legible."""
        meta = _legible(text)
        return meta.uid or meta.full_name if kind.namespaced else meta.name

    def _report(self, kind: Kind, text: bytes | Raw, wrong: WrongField) -> MalformedObject:
        return MalformedObject(kind, self.key(kind, text), legible_name(text), wrong.path, wrong.problem)


def legible_name(text: bytes | Raw) -> str:
    """`namespace/name` of any object, or as much of it as can be read."""
    return _legible(text).full_name or "(name not legible)"


def _legible(text: bytes | Raw) -> _LegibleMeta:
    try:
        return _LEGIBLE.decode(text).metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _LegibleMeta()
