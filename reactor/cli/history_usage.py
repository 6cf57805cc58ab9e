"""`rematch history usage`: what a pod, workload or node used, as a chart, CSV or JSON."""

from __future__ import annotations

import asyncio
import csv
import io
import shutil
import time

from reactor.cli.client import fetch
from reactor.cli.output import to_json
from reactor.cli.usage_plot import plot
from reactor.clock import rfc3339
from reactor.errors import InputError
from reactor.record.usage_reader import UsageDocument, read_usage, subjects_of
from storage.place import Place
from storage.store import Store

HOUR = 3600.0


def show_usage(name: str, namespace: str, hours: int, output: str, store: Place | None, server: str) -> str:
    found = _stored(store, name, namespace, hours) if store is not None else _served(server, name, namespace, hours)
    if found is None:
        raise InputError(
            f"no usage of {name!r} is recorded; write NAMESPACE/POD, deploy/NAME -n NAMESPACE, or node/NAME;"
            " what is new is recorded when its first minute is over"
        )
    if not found.axes:
        raise InputError(f"{found.kind} {found.name} was not measured in the last {hours} h; give more --hours")
    if output == "json":
        return to_json(found)
    return _csv(found) if output == "csv" else plot(found, shutil.get_terminal_size().columns)


def _served(server: str, name: str, namespace: str, hours: int) -> UsageDocument | None:
    return fetch(server, "usage", UsageDocument, name=name, namespace=namespace, hours=str(hours))


def _stored(path: Place, name: str, namespace: str, hours: int) -> UsageDocument | None:
    async def read() -> UsageDocument | None:
        async with await Store.open(path, read_only=True) as store:
            now = max((start + 60.0 for start, _ in (await store.chunk_keys(60))[-1:]), default=time.time())
            return await read_usage(store, subjects_of(name, namespace), now, hours * HOUR)

    return asyncio.run(read())


def _csv(document: UsageDocument) -> str:
    """A line per time. What was not measured is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", "node", *(f"{axis.axis}_{what}" for axis in document.axes for what in ("mean", "max"))])
    columns = [column for axis in document.axes for column in (axis.mean, axis.max)]
    nodes = document.nodes or ("",) * len(document.times)
    for at, node, *values in zip(document.times, nodes, *columns, strict=True):
        writer.writerow([rfc3339(at), node, *("" if value is None else value for value in values)])
    return text.getvalue().rstrip("\n")
