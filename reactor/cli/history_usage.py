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
from reactor.record.usage_reader import UsageAxis, UsageDocument, read_usage
from reactor.web.view import FoundPods
from storage.place import Place
from storage.store import Store

HOUR = 3600.0


def show_usage(name: str, namespace: str, hours: int, output: str, store: Place | None, server: str) -> str:
    found = _stored(store, name, namespace, hours) if store is not None else _served(server, name, namespace, hours)
    if found is None:
        near = _near(server, name, namespace) if store is None else ""
        raise InputError(
            f"no usage of {name!r} is recorded{near}; write NAMESPACE/POD, deploy/NAME -n NAMESPACE, or node/NAME;"
            " what is new is recorded when its first minute is over"
        )
    if not found.axes:
        raise InputError(f"{found.kind} {found.name} was not measured in the last {hours} h; give more --hours")
    if output == "json":
        return to_json(found)
    return as_csv(found) if output == "csv" else plot(found, shutil.get_terminal_size().columns)


def _near(server: str, name: str, namespace: str) -> str:
    query = {"name": name.rpartition("/")[2], "namespace": namespace}
    near = fetch(server, "find", FoundPods, **query) if query["name"] else None
    names = (near.near or tuple(f"{pod.namespace}/{pod.name}" for pod in near.pods)) if near else ()
    return f"; did you mean {', '.join(names[:3])}?" if names else ""


def _served(server: str, name: str, namespace: str, hours: int) -> UsageDocument | None:
    return fetch(server, "usage", UsageDocument, name=name, namespace=namespace, hours=str(hours))


def _stored(path: Place, name: str, namespace: str, hours: int) -> UsageDocument | None:
    async def read() -> UsageDocument | None:
        async with await Store.open(path, read_only=True) as store:
            now = max((start + 60.0 for start, _ in (await store.chunk_keys(60))[-1:]), default=time.time())
            return await read_usage(store, name, namespace, now, hours * HOUR)

    return asyncio.run(read())


def as_csv(document: UsageDocument) -> str:
    """A line per time, then one per horizon of the forecasts. What was not measured is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", "node", *(f"{axis.axis}_{what}" for axis in document.axes for what in _COLUMNS)])
    nodes = document.nodes or ("",) * len(document.times)
    for row, (at, node) in enumerate(zip(document.times, nodes, strict=True)):
        writer.writerow([rfc3339(at), node, *(cell for axis in document.axes for cell in _measured(axis, row))])
    for at in sorted({at for axis in document.axes if axis.forecast for at in axis.forecast.times}):
        writer.writerow([rfc3339(at), "", *(cell for axis in document.axes for cell in _forecast(axis, at))])
    return text.getvalue().rstrip("\n")


_COLUMNS = ("mean", "max", "forecast", "peak", "trust")


def _measured(axis: UsageAxis, row: int) -> tuple[float | str, ...]:
    return (*("" if value is None else value for value in (axis.mean[row], axis.max[row])), "", "", "")


def _forecast(axis: UsageAxis, at: float) -> tuple[float | str, ...]:
    if axis.forecast is None or at not in axis.forecast.times:
        return ("",) * len(_COLUMNS)
    column = axis.forecast.times.index(at)
    return "", "", axis.forecast.values[column], axis.forecast.peaks[column], axis.forecast.trust[column]
