"""The extender at 5,000 nodes and 50,000 pods: 100 pods per second, `filter` and `prioritize` for each over HTTP, all
nodes in every question, while pods come and go and measurements are taken.

The questions come from another process, so that making them takes nothing from the server. Measured are the times that
kube-scheduler would see; the bar is the p99 of them.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import time
from itertools import cycle

import aiohttp
import numpy as np
from prometheus_client import CollectorRegistry

from predictors.peaks import SigmaOrPercentile
from reactor.clock import SystemClock
from reactor.cluster.kinds import Kind
from reactor.cluster.records import Node, Owner, Pod
from reactor.extender.server import Address, serve_extender
from reactor.extender.state import ExtenderState
from reactor.signals.measurements import LinkSample, NetworkSample, NodeRateSample
from reactor.signals.prometheus import PrometheusRound
from reactor.signals.usage import UsageHistory

NODES = 5_000
PODS = 50_000
RATE = 100
SECONDS = 30.0
BAR = 0.050
_STATED_EVERY = 3
"""One of so many pods states its demand."""


class Cluster:
    def __init__(self) -> None:
        self.clock = SystemClock()
        self.usage = UsageHistory(120.0, 900.0, SigmaOrPercentile())
        self.state = ExtenderState(self.usage, dict, self.clock)
        self.nodes = [f"ip-10-0-{number // 250}-{number % 250}.internal" for number in range(NODES)]
        self.pods = [self._pod(number) for number in range(PODS)]

    def fill(self) -> None:
        for name in self.nodes:
            self.usage.observe_node(name)
            self.state.changed(Kind.NODES, None, Node(name, f"uid-{name}", "", {"kubernetes.io/hostname": name}))
        for pod in self.pods:
            self.usage.observe_pod(pod)
            self.state.changed(Kind.PODS, None, pod)

    def samples(self) -> PrometheusRound:
        now, draw = self.clock.now(), np.random.default_rng(1)
        rates, totals = draw.lognormal(13, 1, PODS).tolist(), draw.lognormal(17, 1, NODES).tolist()
        pods = [NetworkSample(pod.namespace, pod.name, rate, now) for pod, rate in zip(self.pods, rates, strict=True)]
        nodes = [NodeRateSample(name, rate, now) for name, rate in zip(self.nodes, totals, strict=True)]
        links = [LinkSample(name, 1e10, now) for name in self.nodes]
        return PrometheusRound(network=pods, node_network=nodes, links=links)

    def _pod(self, number: int) -> Pod:
        stated = {"rematch.io/network-bps": "2M"} if number % _STATED_EVERY == 0 else {}
        app = number % 1000
        owner = Owner("ReplicaSet", f"app-{app}-1a2b", f"owner-{app}")
        node = self.nodes[number % NODES]
        labels = {"pod-template-hash": "1a2b"}
        return Pod(f"uid-{number}", "shop", f"app-{app}-{number}", "", labels, stated, 1.0, node=node, owner=owner)


async def _live(cluster: Cluster) -> None:
    """What the watch and Prometheus bring meanwhile: 200 changes of pods per second, and measurements every 15 s."""
    last = cluster.clock.monotonic()
    for old in cycle(cluster.pods):
        cluster.state.changed(Kind.PODS, old, None)
        cluster.state.changed(Kind.PODS, None, old)
        await asyncio.sleep(0.01)
        if cluster.clock.monotonic() - last > 15.0:
            await cluster.state.record(await asyncio.to_thread(cluster.samples))
            last = cluster.clock.monotonic()


def _body(nodes: list[str], number: int) -> bytes:
    """A pod of usual size."""
    annotations = {"rematch.io/network-bps": "2M"} if number % 2 else {}
    owner = {"kind": "ReplicaSet", "name": "app-7-1a2b", "uid": "owner-7", "controller": True}
    meta: dict[str, object] = {
        "name": f"new-{number}",
        "namespace": "shop",
        "uid": f"new-{number}",
        "annotations": annotations,
    }
    meta |= {"labels": {"pod-template-hash": "1a2b"}, "ownerReferences": [owner]}
    env = [{"name": f"NAME_{each}", "value": "x" * 40} for each in range(40)]
    pod = {"metadata": meta, "spec": {"containers": [{"name": "srv", "env": env}]}}
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": nodes}).encode()


async def _ask(url: str, nodes: list[str], seconds: float) -> list[float]:
    """One pod after the other, as kube-scheduler does, each at its time; late ones at once."""
    bodies = [_body(nodes, number) for number in range(8)]
    took: list[float] = []
    connector = aiohttp.TCPConnector(limit=4)
    async with aiohttp.ClientSession(connector=connector) as session:
        began = time.perf_counter()
        for number in range(int(seconds * RATE)):
            await asyncio.sleep(max(0.0, began + number / RATE - time.perf_counter()))
            for verb in ("filter", "prioritize"):
                asked = time.perf_counter()
                async with session.post(f"{url}/{verb}", data=bodies[number % len(bodies)]) as answer:
                    answer.raise_for_status()
                    await answer.read()
                took.append(time.perf_counter() - asked)
        print(
            f"{number + 1} pods in {time.perf_counter() - began:.1f} s ({RATE} per second were asked for)", flush=True
        )
    return took


def _client(url: str, nodes: list[str], seconds: float) -> None:
    took = np.array(asyncio.run(_ask(url, nodes, seconds))) * 1000
    p50, p99, most = (float(np.percentile(took, share)) for share in (50, 99, 100))
    print(f"{len(took)} answers for {len(nodes)} nodes: p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {most:.1f} ms")
    print(f"bar: p99 below {BAR * 1000:g} ms")
    sys.exit(0 if p99 < BAR * 1000 else 1)


async def _run(seconds: float) -> int:
    cluster = Cluster()
    cluster.fill()
    await cluster.state.record(cluster.samples())
    address = Address("127.0.0.1", 0)
    async with serve_extender(cluster.state, None, CollectorRegistry(), cluster.clock, address) as url:
        live = asyncio.create_task(_live(cluster))
        context = multiprocessing.get_context("spawn")
        client = context.Process(target=_client, args=(url, cluster.nodes, seconds))
        client.start()
        await asyncio.to_thread(client.join)
        live.cancel()
        await asyncio.gather(live, return_exceptions=True)
    return client.exitcode or 0


def main() -> int:
    return asyncio.run(_run(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))


if __name__ == "__main__":
    sys.exit(main())
