"""The decoder of all kinds. An object that cannot be decoded becomes a MalformedObject, not an exception."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Raw, Struct

from reactor.cluster.decoding import objects, storage, workloads
from reactor.cluster.decoding.common import MetaDecoder, WrongField, wrong_field
from reactor.cluster.decoding.events import decode_event
from reactor.cluster.decoding.nodes import NodeDecoder
from reactor.cluster.decoding.pods import PodDecoder
from reactor.cluster.decoding.templates import TemplateDecoder
from reactor.cluster.kinds import WORKLOAD_KINDS, Kind
from reactor.cluster.records import Record


@dataclass(frozen=True, slots=True)
class MalformedObject:
    """An object that could not be decoded: which one, as far as it can be read, and what is wrong with it."""

    kind: Kind
    key: str
    """As `key_of` for its record would be; empty when it cannot be read, either."""
    name: str
    path: str
    problem: str

    def __str__(self) -> str:
        path = f" {self.path}:" if self.path else ""
        return f"{self.kind.object_kind} {self.name}:{path} {self.problem}"


class _NameMeta(Struct, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name


class _Named(Struct, gc=False):
    metadata: _NameMeta


_NAMED = msgspec.json.Decoder(_Named)


def key_of(kind: Kind, record: Record) -> str:
    """Identifies a record among its kind: the UID where another object can get the same name."""
    return record.uid if kind.namespaced else record.name


class Decoder:
    """Shares equal parts of records, so use one for all objects of a cluster."""

    def __init__(self) -> None:
        metas, templates = MetaDecoder(), TemplateDecoder()
        self._decoders: Mapping[Kind, Callable[[bytes | Raw], Record]] = {
            Kind.PODS: PodDecoder(metas).decode,
            Kind.NODES: NodeDecoder(metas).decode,
            Kind.EVENTS: decode_event,
            **{kind: workloads.workload_decoder(kind.object_kind, metas, templates) for kind in WORKLOAD_KINDS},
            Kind.PDBS: objects.decode_pdb,
            Kind.HPAS: objects.decode_hpa,
            Kind.SERVICES: objects.decode_service,
            Kind.RESOURCE_QUOTAS: objects.decode_resource_quota,
            Kind.NAMESPACES: objects.namespace_decoder(metas),
            Kind.PVCS: storage.decode_pvc,
            Kind.PVS: storage.decode_pv,
            Kind.CSI_NODES: storage.decode_csi_node,
            Kind.VOLUME_ATTACHMENTS: storage.decode_volume_attachment,
            Kind.CONFIG_MAPS: objects.decode_config_map,
        }

    def decode(self, kind: Kind, text: bytes | Raw) -> Record | MalformedObject:
        """Never raises: one malformed object must not stop the others."""
        try:
            return self._decoders[kind](text)
        except WrongField as error:
            return self._report(kind, text, error)
        except msgspec.DecodeError as error:
            return self._report(kind, text, wrong_field(error))
        except UnicodeDecodeError:
            return self._report(kind, text, WrongField("", "is not valid UTF-8"))

    def key(self, kind: Kind, text: bytes | Raw) -> str:
        """The key of an object without decoding the rest; empty when it cannot be read."""
        meta = _name_of(text)
        return meta.uid or meta.full_name if kind.namespaced else meta.name

    def _report(self, kind: Kind, text: bytes | Raw, wrong: WrongField) -> MalformedObject:
        return MalformedObject(kind, self.key(kind, text), readable_name(text), wrong.path, wrong.problem)


def readable_name(text: bytes | Raw) -> str:
    """`namespace/name` of any object, as far as it can be read."""
    return _name_of(text).full_name or "(unreadable name)"


def _name_of(text: bytes | Raw) -> _NameMeta:
    try:
        return _NAMED.decode(text).metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _NameMeta()
