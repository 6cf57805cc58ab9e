"""metrics.k8s.io: the second source of usage, for pods and nodes that Prometheus has no samples of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

from reactor.clock import Clock
from reactor.cluster.decoding import metrics as decoding
from reactor.cluster.records import NodeUsageSample, PodUsageSample
from reactor.errors import ClusterError, MetricsError, NotFound
from reactor.work_queue import BATCH

_PODS = "/apis/metrics.k8s.io/v1beta1/pods"
_NODES = "/apis/metrics.k8s.io/v1beta1/nodes"
_RETRY_ABSENT = 300.0
"""Seconds until an API that was absent is requested again."""

Sample = TypeVar("Sample")


class RawReader(Protocol):
    async def get_raw(self, path: str, deadline: float) -> bytes:
        """Raises NotFound for an API that is not there, another ClusterError for anything else."""
        ...


@dataclass(frozen=True, slots=True)
class MetricsApiRound:
    """The result of one round. Many clusters have no metrics server: `absent` is reported as a problem only once."""

    pods: tuple[PodUsageSample, ...] = ()
    nodes: tuple[NodeUsageSample, ...] = ()
    absent: bool = False
    problems: tuple[MetricsError, ...] = ()


class MetricsApiSource:
    def __init__(self, reader: RawReader, clock: Clock, yield_to_cycle: Callable[[], Awaitable[None]]) -> None:
        self._reader = reader
        self._yield_to_cycle = yield_to_cycle
        self._clock = clock
        self._absent_until = -1.0
        self._reported_absent = False

    async def read(self, deadline: float) -> MetricsApiRound:
        """`deadline` in seconds applies to each of the two lists."""
        if self._clock.monotonic() < self._absent_until:
            return MetricsApiRound(absent=True)
        problems: list[MetricsError] = []
        try:
            pods = await self._list(_PODS, deadline, decoding.decode_pod_metrics, problems)
            nodes = await self._list(_NODES, deadline, decoding.decode_node_metrics, problems)
        except NotFound:
            return self._absent()
        self._reported_absent = False
        return MetricsApiRound(tuple(pods), tuple(nodes), problems=tuple(problems))

    async def _list(
        self, path: str, deadline: float, decode: Callable[[Raw], Sample], problems: list[MetricsError]
    ) -> list[Sample]:
        try:
            return await self._decoded(path, await self._reader.get_raw(path, deadline), decode, problems)
        except NotFound:
            raise
        except ClusterError as error:
            problems.append(MetricsError(f"{path}: {error}"))
        except MetricsError as error:
            problems.append(error)
        return []

    async def _decoded(
        self, origin: str, text: bytes, decode: Callable[[Raw], Sample], problems: list[MetricsError]
    ) -> list[Sample]:
        """The samples of a List. Objects that cannot be decoded are added to `problems` and skipped."""
        samples = []
        for index, item in enumerate(_items(origin, text)):
            if index and index % BATCH == 0:
                await self._yield_to_cycle()
            try:
                samples.append(decode(item))
            except ValueError as error:
                problems.append(MetricsError(f"{origin}: items[{index}]: {error}"))
        return samples

    def _absent(self) -> MetricsApiRound:
        self._absent_until = self._clock.monotonic() + _RETRY_ABSENT
        if self._reported_absent:
            return MetricsApiRound(absent=True)
        self._reported_absent = True
        text = "metrics.k8s.io is not served by this cluster: install metrics-server, or set metrics.metricsApi.enabled"
        return MetricsApiRound(absent=True, problems=(MetricsError(f"{text}: false"),))


class _List(Struct, gc=False):
    items: list[Raw] | None


def _items(origin: str, text: bytes) -> list[Raw]:
    try:
        return msgspec.json.decode(text, type=_List).items or []
    except msgspec.MsgspecError as error:
        raise MetricsError(f"{origin}: the response is not a list of metrics: {error}") from error
