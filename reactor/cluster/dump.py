"""A cluster from files: what `kubectl get ... -o json` prints, read by the same decoders as the live cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from reactor.cluster.decoding.decoder import Decoder, MalformedObject, legible_name
from reactor.cluster.decoding.metrics import decode_node_metrics, decode_pod_metrics
from reactor.cluster.decoding.nodes import last_heartbeat
from reactor.cluster.decoding.parts import WrongField, given, wrong_field
from reactor.cluster.documents import documents, place, read_file
from reactor.cluster.kinds import BY_OBJECT_KIND, Kind
from reactor.cluster.mirror import ClusterMirror
from reactor.cluster.records import Event, Node, Pod, Record
from reactor.cluster.samples import NodeUsageSample, PodUsageSample
from reactor.cluster.view import ClusterView
from reactor.errors import InputError

_EXPECTED = "expected what `kubectl get ... -o json` prints"
T = TypeVar("T")

_OUR_GROUPS = frozenset({"", "apps", "batch", "policy", "extensions", "events.k8s.io", "metrics.k8s.io"})
"""Kinds of other groups may have the same names; any version of these is read."""


@dataclass(frozen=True, slots=True)
class Dump:
    """`view.at` is the newest timestamp in the files."""

    view: ClusterView
    events: tuple[Event, ...]
    pod_usage: tuple[PodUsageSample, ...]
    node_usage: tuple[NodeUsageSample, ...]
    ignored: Mapping[str, int]
    """How many objects of which kinds were not of interest."""


def read_dump(paths: Iterable[str]) -> Dump:
    """Raises InputError with one line that names the file and the place. `-` is standard input."""
    reading = _Reading()
    for path in paths:
        data = read_file(path)
        for start, document in documents(path, data):
            try:
                reading.take(Raw(document))
            except _WrongError as wrong:
                byte = data.find(wrong.text.strip(), start)
                raise place(path, data, byte, wrong.problem) from wrong
    return reading.dump()


class _WrongError(InputError):
    """Something in a document is not as it should be; `text` is the smallest piece of JSON around it."""

    def __init__(self, text: bytes | Raw, problem: str) -> None:
        self.text = bytes(text)
        self.problem = problem
        super().__init__(problem)


class _Document(Struct, rename="camel", gc=False):
    """A list, an object, or a line of `kubectl get --watch --output-watch-events`."""

    kind: str | None = None
    api_version: str | None = None
    items: Raw = Raw(b"")
    type: str | None = None
    object: Raw = Raw(b"")


_DOCUMENT = msgspec.json.Decoder(_Document)
_SEVERAL = msgspec.json.Decoder(list[Raw] | None)


class _Reading:
    """What has been read so far; of an object that comes twice the last one counts."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._mirror = ClusterMirror((), lambda _kind, _old, _new: None)
        self._events: dict[str, Event] = {}
        self._pod_usage: dict[tuple[str, str], PodUsageSample] = {}
        self._node_usage: dict[str, NodeUsageSample] = {}
        self._ignored: Counter[str] = Counter()
        self._newest = 0.0

    def dump(self) -> Dump:
        return Dump(
            view=self._mirror.freeze(self._newest),
            events=tuple(self._events.values()),
            pod_usage=tuple(self._pod_usage.values()),
            node_usage=tuple(self._node_usage.values()),
            ignored=dict(self._ignored),
        )

    def take(self, text: Raw, kind: str | None = None) -> None:
        """`kind` is what the list around says; a raw API list does not repeat it in its items."""
        if bytes(memoryview(text)[:64]).lstrip().startswith(b"["):
            self._take_items(text, None)
            return
        document = _decoded(_DOCUMENT, text)
        kind = document.kind or kind
        if kind is None and given(document.object):
            self._take_change(document)
        elif kind is None:
            raise _WrongError(text, f"an object without kind; {_EXPECTED}")
        elif kind.endswith("List") and given(document.items):
            self._take_items(document.items, kind.removesuffix("List") or None)
        else:
            self._take_object(text, kind, document.api_version or "")

    def _take_items(self, text: Raw, kind: str | None) -> None:
        for item in _decoded(_SEVERAL, text) or ():
            self.take(item, kind)

    def _take_change(self, change: _Document) -> None:
        if change.type != "DELETED":
            self.take(change.object)

    def _take_object(self, text: Raw, kind: str, api_version: str) -> None:
        if api_version.rpartition("/")[0] not in _OUR_GROUPS:
            self._ignored[kind] += 1
        elif kind in BY_OBJECT_KIND:
            self._take_record(text, BY_OBJECT_KIND[kind])
        elif kind in ("PodMetrics", "NodeMetrics"):
            self._take_metrics(text, kind)
        else:
            self._ignored[kind] += 1

    def _take_record(self, text: Raw, kind: Kind) -> None:
        record = self._decoder.decode(kind, text)
        if isinstance(record, MalformedObject):
            raise _WrongError(text, str(record))
        if isinstance(record, Event):
            self._events[record.uid] = record
        else:
            self._mirror.upsert(kind, record)
        self._saw(_newest_time(record, text))

    def _take_metrics(self, text: Raw, kind: str) -> None:
        try:
            if kind == "PodMetrics":
                pod = decode_pod_metrics(text)
                self._pod_usage[pod.namespace, pod.pod] = pod
                self._saw(pod.at)
            else:
                node = decode_node_metrics(text)
                self._node_usage[node.node] = node
                self._saw(node.at)
        except WrongField as wrong:
            raise _WrongError(text, f"{kind} {legible_name(text)}: {wrong}") from wrong
        except msgspec.ValidationError as error:
            raise _WrongError(text, f"{kind} {legible_name(text)}: {wrong_field(error)}") from error

    def _saw(self, time: float) -> None:
        self._newest = max(self._newest, time)


def _decoded(decoder: msgspec.json.Decoder[T], text: Raw) -> T:
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise _WrongError(text, f"{wrong_field(error)}; {_EXPECTED}") from error


def _newest_time(record: Record, text: Raw) -> float:
    match record:
        case Event():
            return record.last
        case Pod():
            starts = (container.started or 0.0 for container in record.containers)
            return max(record.created, record.started or 0.0, record.ready_since or 0.0, *starts)
        case Node():
            return max(record.created, last_heartbeat(text))
        case _:
            return 0.0
