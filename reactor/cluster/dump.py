"""A cluster from files: the output of `kubectl get ... -o json`, decoded like the live cluster."""

from __future__ import annotations

import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from gzip import BadGzipFile, decompress
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from reactor.cluster.decoding.common import WrongField, is_given, wrong_field
from reactor.cluster.decoding.decoder import Decoder, MalformedObject, readable_name
from reactor.cluster.decoding.metrics import decode_node_metrics, decode_pod_metrics
from reactor.cluster.decoding.nodes import last_heartbeat
from reactor.cluster.kinds import BY_OBJECT_KIND, Kind
from reactor.cluster.mirror import ClusterMirror
from reactor.cluster.records import Event, Node, NodeUsageSample, Pod, PodUsageSample, Record
from reactor.cluster.view import ClusterView
from reactor.errors import InputError

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_POSITION = re.compile(r"^(?:JSON is malformed: )?(?P<problem>.*) \(byte (?P<byte>\d+)\)$")
_YAML = re.compile(rb"\s*(?:---|#|- |[A-Za-z][A-Za-z0-9_.-]*:(?:\s|$))")
_RAW = msgspec.json.Decoder(Raw)
_TRAILING = "trailing characters"
_TRUNCATED = "ends too early: the file is truncated"

_EXPECTED = "expected what `kubectl get ... -o json` prints"
_OUR_GROUPS = frozenset(
    {"", "apps", "autoscaling", "batch", "policy", "extensions", "events.k8s.io", "metrics.k8s.io", "storage.k8s.io"}
)
"""Kinds of other groups may have the same names. Every version of these groups is read."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dump:
    """`view.at` is the newest timestamp in the files."""

    view: ClusterView
    events: tuple[Event, ...]
    """Those that the mirror keeps of a live cluster."""
    lists_events: bool
    """The files hold an Event of any kind; without one nobody asked for them, or all have expired."""
    pod_usage: tuple[PodUsageSample, ...]
    node_usage: tuple[NodeUsageSample, ...]
    ignored: Mapping[str, int]
    """The number of ignored objects by kind."""


def read_dump(paths: Iterable[str], contents: Mapping[str, bytes] = MappingProxyType({})) -> Dump:
    """Raises InputError with one line that names the file and the position. `-` is standard input.

    `contents` are files that were read before.
    """
    reader = _DumpReader()
    for path in paths:
        data = contents[path] if path in contents else read_input(path)
        for start, document in documents(path, data):
            try:
                reader.take(Raw(document))
            except _DocumentError as error:
                byte = data.find(error.text.strip(), start)
                raise error_at(path, data, byte, error.problem) from error
    return reader.dump()


def read_input(path: str) -> bytes:
    """`-` is standard input. Gzip is recognised by its first bytes, not by the name."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{display_name(path)}: cannot be read: {error.strerror or error}") from error
    if not data.startswith(_GZIP):
        return data.removeprefix(_BOM)
    try:
        return decompress(data).removeprefix(_BOM)
    except (EOFError, BadGzipFile, zlib.error) as error:
        raise InputError(f"{display_name(path)}: damaged gzip file: {error}") from error


def documents(path: str, data: bytes) -> Iterator[tuple[int, bytes]]:
    """The JSON documents in the data, each with its first byte."""
    if not data.strip():
        raise InputError(f"{display_name(path)}: is empty; expected what `kubectl get ... -o json` prints")
    start = 0
    while start < len(data):
        end = _end_of_document(path, data, start)
        yield start, data[start:end]
        start = end


def error_at(path: str, data: bytes, byte: int, problem: str) -> InputError:
    """Lines and columns count from 1, bytes from 0."""
    line = data.count(b"\n", 0, byte) + 1
    column = byte - (data.rfind(b"\n", 0, byte) + 1) + 1
    return InputError(f"{display_name(path)}: line {line}, column {column} (byte {byte}): {problem}")


def display_name(path: str) -> str:
    return "standard input" if path == "-" else path


def _end_of_document(path: str, data: bytes, start: int) -> int:
    """A document ends where the parser finds trailing characters: the next document."""
    try:
        _RAW.decode(memoryview(data)[start:])
    except msgspec.DecodeError as error:
        found = _POSITION.match(str(error))
        if found is None:
            raise error_at(path, data, len(data), _TRUNCATED) from error
        byte = start + int(found["byte"])
        if found["problem"] == _TRAILING:
            return byte - 1
        raise error_at(path, data, byte, _explain(data, start, found["problem"])) from error
    except RecursionError as error:
        raise error_at(path, data, start, "not a cluster: nested too deeply") from error
    return len(data)


def _explain(data: bytes, start: int, problem: str) -> str:
    if start == 0 and _YAML.match(data):
        return "looks like YAML; only JSON is read (kubectl get ... -o json)"
    return f"not JSON: {problem}"


class _DocumentError(InputError):
    """An error in a document; `text` is the smallest piece of JSON that contains it."""

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
_ITEMS = msgspec.json.Decoder(list[Raw] | None)


class _DumpReader:
    """Collects the objects of all documents. When an object occurs twice, the last one counts."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._mirror = ClusterMirror((), lambda _kind, _old, _new: None)
        self._pod_usage: dict[tuple[str, str], PodUsageSample] = {}
        self._node_usage: dict[str, NodeUsageSample] = {}
        self._ignored: Counter[str] = Counter()
        self._lists_events = False
        self._newest = 0.0

    def dump(self) -> Dump:
        return Dump(
            view=self._mirror.freeze(self._newest),
            events=tuple(cast("Mapping[str, Event]", self._mirror.records(Kind.EVENTS)).values()),
            lists_events=self._lists_events,
            pod_usage=tuple(self._pod_usage.values()),
            node_usage=tuple(self._node_usage.values()),
            ignored=dict(self._ignored),
        )

    def take(self, text: Raw, kind: str | None = None) -> None:
        """`kind` is that of the list around it: the items of a raw API list do not repeat it."""
        if bytes(memoryview(text)[:64]).lstrip().startswith(b"["):
            self._take_items(text, None)
            return
        document = _decoded(_DOCUMENT, text)
        kind = document.kind or kind
        if kind is None and is_given(document.object):
            self._take_change(document)
        elif kind is None:
            raise _DocumentError(text, f"an object without kind; {_EXPECTED}")
        elif kind.endswith("List") and is_given(document.items):
            self._take_items(document.items, kind.removesuffix("List") or None)
        else:
            self._take_object(text, kind, document.api_version or "")

    def _take_items(self, text: Raw, kind: str | None) -> None:
        for item in _decoded(_ITEMS, text) or ():
            self.take(item, kind)

    def _take_change(self, change: _Document) -> None:
        if change.type != "DELETED":
            self.take(change.object)
            return
        kind = BY_OBJECT_KIND.get(_decoded(_DOCUMENT, change.object).kind or "")
        if kind not in (None, Kind.EVENTS):  # an Event that expires has happened
            self._mirror.remove(kind, self._decoder.key(kind, change.object))

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
            raise _DocumentError(text, str(record))
        self._mirror.upsert(kind, record)
        self._lists_events |= kind is Kind.EVENTS
        self._note_time(_newest_time(record, text))

    def _take_metrics(self, text: Raw, kind: str) -> None:
        try:
            if kind == "PodMetrics":
                pod = decode_pod_metrics(text)
                self._pod_usage[pod.namespace, pod.pod] = pod
                self._note_time(pod.at)
            else:
                node = decode_node_metrics(text)
                self._node_usage[node.node] = node
                self._note_time(node.at)
        except WrongField as error:
            raise _DocumentError(text, f"{kind} {readable_name(text)}: {error}") from error
        except msgspec.ValidationError as error:
            raise _DocumentError(text, f"{kind} {readable_name(text)}: {wrong_field(error)}") from error

    def _note_time(self, time: float) -> None:
        self._newest = max(self._newest, time)


def _decoded(decoder: msgspec.json.Decoder[T], text: Raw) -> T:
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise _DocumentError(text, f"{wrong_field(error)}; {_EXPECTED}") from error


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
