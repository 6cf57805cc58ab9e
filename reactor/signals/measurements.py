"""A measurement as a decision may see it: a number only when it is fresh, else the reason why there is none."""

from __future__ import annotations

import math

from msgspec import Struct

from reactor.cluster.samples import Quality, Source


class Measurement(Struct, frozen=True, gc=False):
    """`value` is the last one told, NaN when none was; use `fresh`, which is None unless it may be used."""

    quality: Quality
    value: float = math.nan
    at: float = 0.0
    source: Source | None = None

    @property
    def fresh(self) -> float | None:
        return self.value if self.quality is Quality.FRESH else None


MISSING = Measurement(Quality.MISSING)


class Usage(Struct, frozen=True, gc=False):
    """Cores and bytes."""

    cpu: Measurement = MISSING
    memory: Measurement = MISSING

    @property
    def known(self) -> bool:
        return self.cpu.fresh is not None and self.memory.fresh is not None


class Peak(Struct, frozen=True, gc=False):
    """Cores and bytes that will be needed soon; None where no usage was ever told."""

    cpu: float | None = None
    memory: float | None = None


UNKNOWN_PEAK = Peak()
