"""An API server for benchmarks, meant for a process of its own: pages and streams of generated objects, nothing else.

    python -m loadtests.benchmarks.sync_server --pods 15000 --nodes 500 [--rate 5000 --seconds 20]

Prints its port, and serves until its standard input is closed. With a rate, the watches of pods and of events get
half of it each as changes. A change carries the time at which it was due, so that a slow reader cannot slow the clock
down, and the time at which it was written, which tells this server's own lateness.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from aiohttp import web

from loadtests.benchmarks.sync_objects import (
    PODS_PER_WORKLOAD,
    event_template,
    node_template,
    pod_template,
    uid,
    workload_template,
)

_TICK = 0.02
_EVENT_PADDING = 6200
_POD, _NODE, _REPLICA_SET, _DEPLOYMENT, _EVENT = range(1, 6)


@dataclass(frozen=True, slots=True)
class Shape:
    pods: int
    nodes: int
    rate: float = 0.0
    seconds: float = 0.0

    @property
    def workloads(self) -> int:
        return -(-self.pods // PODS_PER_WORKLOAD)


class Objects:
    """Renders object number n of a kind."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._pod = pod_template()
        self._node = node_template()
        self._replica_set = workload_template(owned=True)
        self._deployment = workload_template(owned=False)
        self._event = event_template(_EVENT_PADDING)
        self.listed: dict[str, tuple[int, Callable[[int], bytes]]] = {
            "pods": (shape.pods, self.pod),
            "nodes": (shape.nodes, self.node),
            "replicasets": (shape.workloads, self.replica_set),
            "deployments": (shape.workloads, self.deployment),
        }

    def pod(self, number: int, version: int = 1, due: float = 0.0, written: float = 0.0) -> bytes:
        workload = number // PODS_PER_WORKLOAD
        suffix = f"{number:06x}"[-5:]
        return self._pod.fill(
            uid=uid(_POD, number),
            owner=uid(_REPLICA_SET, workload),
            name=f"web-{workload}-54c76bc4d8-{suffix}",
            suffix=suffix,
            namespace=_namespace(workload),
            workload=workload,
            node=f"node-{number % self._shape.nodes}",
            address=f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
            version=version,
            due=repr(due),
            written=repr(written),
        )

    def node(self, number: int) -> bytes:
        return self._node.fill(name=f"node-{number}", uid=uid(_NODE, number), version=1)

    def replica_set(self, number: int) -> bytes:
        name = f"web-{number}-54c76bc4d8"
        return self._replica_set.fill(uid=uid(_REPLICA_SET, number), name=name, **self._workload(number))

    def deployment(self, number: int) -> bytes:
        return self._deployment.fill(uid=uid(_DEPLOYMENT, number), name=f"web-{number}", **self._workload(number))

    @staticmethod
    def _workload(number: int) -> dict[str, object]:
        return {
            "owner": uid(_DEPLOYMENT, number),
            "namespace": _namespace(number),
            "workload": number,
            "suffix": "template",
            "version": 1,
        }

    def event(self, number: int, version: int, due: float, written: float) -> bytes:
        workload = number // PODS_PER_WORKLOAD
        return self._event.fill(
            name=f"web-{number}.event",
            uid=uid(_EVENT, number),
            version=version,
            namespace=_namespace(workload),
            pod=f"web-{workload}-54c76bc4d8-{number:05x}",
            pod_uid=uid(_POD, number),
            due=_stamp(due),
            written=_stamp(written),
        )


def _stamp(time_: float) -> str:
    return datetime.fromtimestamp(time_, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _namespace(workload: int) -> str:
    return f"team-{workload % 50}"


class Server:
    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._objects = Objects(shape)

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/{path:.*}/{plural}", self._answer)
        return application

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        plural = request.match_info["plural"]
        if request.path.startswith("/apis/metrics.k8s.io/"):
            raise web.HTTPNotFound
        if request.query.get("watch") == "true":
            return await self._watch(request, plural)
        return self._list(request, plural)

    def _list(self, request: web.Request, plural: str) -> web.Response:
        total, render = self._objects.listed.get(plural, (0, self._objects.node))
        start = int(request.query.get("continue", "0"))
        end = min(total, start + int(request.query.get("limit", "500")))
        token = b',"continue":"%d","remainingItemCount":%d' % (end, total - end) if end < total else b""
        items = b",".join(map(render, range(start, end)))
        body = b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"%b},"items":[%b]}' % (token, items)
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        if self._shape.rate and plural in ("pods", "events"):
            with suppress(ConnectionError):  # the reader has seen enough
                await self._changes(response, plural)
        await asyncio.sleep(float(request.query["timeoutSeconds"]))
        return response

    async def _changes(self, response: web.StreamResponse, plural: str) -> None:
        render = self._objects.pod if plural == "pods" else self._objects.event
        per_tick = self._shape.rate / 2 * _TICK
        began = time.time()
        number = 0
        for tick in range(1, int(self._shape.seconds / _TICK) + 1):
            due = began + tick * _TICK
            await asyncio.sleep(max(0.0, due - time.time()))
            written = time.time()
            lines = []
            while number < tick * per_tick:
                number += 1
                changed = render(number * 7919 % self._shape.pods, number + 1, due, written)
                lines.append(b'{"type":"MODIFIED","object":%b}\n' % changed)
            await response.write(b"".join(lines))


async def _serve(shape: Shape) -> None:
    runner = web.AppRunner(Server(shape).application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.buffer.read)
    await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=0.0)
    arguments = parser.parse_args()
    asyncio.run(_serve(Shape(arguments.pods, arguments.nodes, arguments.rate, arguments.seconds)))


if __name__ == "__main__":
    main()
