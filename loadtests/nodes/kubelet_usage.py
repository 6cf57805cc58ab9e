"""metrics.k8s.io from real kubelets: rates from the counters in their /metrics/resource, as metrics-server makes them.

The kubelet dates its samples itself (it looks at a container only now and then), and a rate is taken between two
different dates.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import aiohttp

from loadtests.embedded.metrics_api import NodeMetrics, PodMetrics
from loadtests.workloads.api import Changed, Json, Listed
from reactor.clock import Clock

_LINE = re.compile(r"^([a-z_]+)(?:\{([^}]*)\})? (\S+)(?: (\d+))?$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_SECONDS = 5.0
_NODE = ("", "", "")
_FORGET = 60.0

Key = tuple[str, str, str]
"""Namespace, pod, container; all empty for the node itself."""


@dataclass(frozen=True, slots=True)
class CounterSample:
    at: float
    value: float


@dataclass(frozen=True, slots=True)
class Rate:
    at: float
    window: float
    cores: float


@dataclass(frozen=True, slots=True)
class Scrape:
    cpu: Mapping[Key, CounterSample]
    memory: Mapping[Key, CounterSample]


def parse_resource_metrics(text: str) -> Scrape:
    cpu: dict[Key, CounterSample] = {}
    memory: dict[Key, CounterSample] = {}
    places = {
        "node_cpu_usage_seconds_total": cpu,
        "container_cpu_usage_seconds_total": cpu,
        "node_memory_working_set_bytes": memory,
        "container_memory_working_set_bytes": memory,
    }
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is not None and match[1] in places and match[4]:
            labels = dict(_LABEL.findall(match[2] or ""))
            key = (labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", ""))
            places[match[1]][key] = CounterSample(int(match[4]) / 1000, float(match[3]))
    return Scrape(cpu, memory)


class KubeletRates:
    """One kubelet's rates; a counter that starts again has none until its next sample."""

    def __init__(self) -> None:
        self._last: dict[Key, CounterSample] = {}
        self.rates: dict[Key, Rate] = {}
        self.memory: Mapping[Key, CounterSample] = {}

    def take(self, scrape: Scrape) -> None:
        for key, sample in scrape.cpu.items():
            before = self._last.get(key)
            if before is not None and sample.at <= before.at:
                continue
            self._last[key] = sample
            if before is None or sample.value < before.value:
                self.rates.pop(key, None)
                continue
            window = sample.at - before.at
            self.rates[key] = Rate(sample.at, window, (sample.value - before.value) / window)
        for key in self._last.keys() - scrape.cpu.keys():
            del self._last[key]
            self.rates.pop(key, None)
        self.memory = scrape.memory


Labels = tuple[tuple[str, str], ...]


class PodLabels:
    """Of the pods that exist: autoscalers ask for the metrics of pods by label."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Labels] = {}

    def see(self, change: Listed | Changed) -> None:
        if isinstance(change, Listed):
            self._known = dict(map(_labelled, change.items))
            return
        name, labels = _labelled(change.item)
        if change.kind == "DELETED":
            self._known.pop(name, None)
        else:
            self._known[name] = labels

    def of(self, namespace: str, name: str) -> Labels:
        return self._known.get((namespace, name), ())


def _labelled(pod: Json) -> tuple[tuple[str, str], Labels]:
    meta = pod["metadata"]
    return (meta["namespace"], meta["name"]), tuple((meta.get("labels") or {}).items())


class KubeletUsage:
    """A `MetricsProvider`; `run` asks the kubelets that `targets` names (node -> host:port) every `step`."""

    def __init__(
        self,
        targets: Callable[[], Mapping[str, str]],
        clock: Clock,
        step: float = 2.0,
        labels: PodLabels | None = None,
    ) -> None:
        self._targets = targets
        self._labels = labels or PodLabels()
        self._clock = clock
        self._step = step
        self._kubelets: dict[str, KubeletRates] = {}

    async def run(self) -> None:
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                targets = self._targets()
                for gone in self._kubelets.keys() - targets.keys():
                    del self._kubelets[gone]
                await asyncio.gather(*(self._ask(session, *target) for target in targets.items()))
                await self._clock.sleep(self._step)

    def node_usage(self) -> Iterator[NodeMetrics]:
        for node, kubelet in self._kubelets.items():
            rate, memory = kubelet.rates.get(_NODE), kubelet.memory.get(_NODE)
            if rate is not None and memory is not None and self._is_fresh(rate):
                yield NodeMetrics(node, rate.cores, memory.value, rate.at, rate.window)

    def pod_usage(self) -> Iterator[PodMetrics]:
        for kubelet in self._kubelets.values():
            for (namespace, name), keys in _by_pod(kubelet.rates).items():
                rates = [kubelet.rates[key] for key in keys]
                if not all(key in kubelet.memory and self._is_fresh(kubelet.rates[key]) for key in keys):
                    continue
                containers = tuple((key[2], kubelet.rates[key].cores, kubelet.memory[key].value) for key in keys)
                oldest = min(rates, key=lambda rate: rate.at)
                labels = self._labels.of(namespace, name)
                yield PodMetrics(namespace, name, containers, oldest.at, labels, oldest.window)

    async def _ask(self, session: aiohttp.ClientSession, node: str, target: str) -> None:
        """A kubelet that does not answer has nothing new; its last figures grow old."""
        try:
            async with session.get(f"http://{target}/metrics/resource") as answer:
                answer.raise_for_status()
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            return
        self._kubelets.setdefault(node, KubeletRates()).take(parse_resource_metrics(text))

    def _is_fresh(self, rate: Rate) -> bool:
        return self._clock.now() - rate.at < _FORGET


def _by_pod(keys: Iterable[Key]) -> dict[tuple[str, str], list[Key]]:
    found: dict[tuple[str, str], list[Key]] = {}
    for key in keys:
        if key != _NODE:
            found.setdefault(key[:2], []).append(key)
    return found
