"""The samples that the charts draw: usage, availability and happiness over time, bounded, in memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from reactor.web.view import NodeSeries, Series

SAMPLES_KEPT = 1800


@dataclass(frozen=True, slots=True)
class ChartSample:
    """One point of the charts: shares of capacity, None where not measured."""

    at: float
    availability: float | None
    latency_p95: float | None
    happiness_min: float | None
    """Of the running managed pods; None if there are none."""
    happiness_mean: float | None
    cpu: dict[str, float | None]
    memory: dict[str, float | None]


class ChartSamples:
    def __init__(self) -> None:
        self._samples: deque[ChartSample] = deque(maxlen=SAMPLES_KEPT)
        self.version = 0
        """Grows with every sample."""

    def add(self, sample: ChartSample) -> None:
        self._samples.append(sample)
        self.version += 1

    @property
    def since(self) -> float:
        """The time of the oldest sample."""
        return self._samples[0].at if self._samples else float("inf")

    def series(self, rematches: tuple[float, ...]) -> Series:
        """`rematches` are the marks in the charts."""
        samples = list(self._samples)
        names = sorted({name for sample in samples for name in sample.cpu})
        nodes = tuple(
            NodeSeries(
                name,
                tuple(sample.cpu.get(name) for sample in samples),
                tuple(sample.memory.get(name) for sample in samples),
            )
            for name in names
        )
        return Series(
            times=tuple(sample.at for sample in samples),
            availability=tuple(sample.availability for sample in samples),
            latency_p95=tuple(sample.latency_p95 for sample in samples),
            happiness_min=tuple(sample.happiness_min for sample in samples),
            happiness_mean=tuple(sample.happiness_mean for sample in samples),
            nodes=nodes,
            node_count=len(names),
            rematches=rematches,
        )
