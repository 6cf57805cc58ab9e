"""JSON documents in a file: one or several, plain or gzip; a mistake is told with its place in one line."""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Iterator
from gzip import BadGzipFile, decompress
from pathlib import Path

import msgspec
from msgspec import Raw

from reactor.errors import InputError

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_PLACE = re.compile(r"^(?:JSON is malformed: )?(?P<problem>.*) \(byte (?P<byte>\d+)\)$")
_YAML = re.compile(rb"\s*(?:---|#|- |[A-Za-z][A-Za-z0-9_.-]*:(?:\s|$))")
_RAW = msgspec.json.Decoder(Raw)
_TRAILING = "trailing characters"
_CUT = "ends too early: the file is truncated"


def read_file(path: str) -> bytes:
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
    """Each document with the byte that it starts at."""
    if not data.strip():
        raise InputError(f"{display_name(path)}: is empty; expected what `kubectl get ... -o json` prints")
    start = 0
    while start < len(data):
        end = _end_of_document(path, data, start)
        yield start, data[start:end]
        start = end


def place(path: str, data: bytes, byte: int, problem: str) -> InputError:
    """Lines and columns count from 1, bytes from 0."""
    line = data.count(b"\n", 0, byte) + 1
    column = byte - (data.rfind(b"\n", 0, byte) + 1) + 1
    return InputError(f"{display_name(path)}: line {line}, column {column} (byte {byte}): {problem}")


def display_name(path: str) -> str:
    return "standard input" if path == "-" else path


def _end_of_document(path: str, data: bytes, start: int) -> int:
    """A document ends where the parser finds the first character of the next one."""
    try:
        _RAW.decode(memoryview(data)[start:])
    except msgspec.DecodeError as error:
        found = _PLACE.match(str(error))
        if found is None:
            raise place(path, data, len(data), _CUT) from error
        byte = start + int(found["byte"])
        if found["problem"] == _TRAILING:
            return byte - 1
        raise place(path, data, byte, _explain(data, start, found["problem"])) from error
    except RecursionError as error:
        raise place(path, data, start, "not a cluster: nested too deeply") from error
    return len(data)


def _explain(data: bytes, start: int, problem: str) -> str:
    if start == 0 and _YAML.match(data):
        return "looks like YAML; only JSON is read (kubectl get ... -o json)"
    return f"not JSON: {problem}"
