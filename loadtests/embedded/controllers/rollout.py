"""How far a rolling update may go in one step: numbers in, numbers out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from loadtests.embedded.resources import Json


@dataclass(frozen=True, slots=True)
class Count:
    """One replica set of a deployment, by its numbers."""

    name: str
    wanted: int
    available: int


@dataclass(frozen=True, slots=True)
class Limits:
    surge: int
    unavailable: int


def limits_of(deployment_spec: Json) -> Limits:
    stated = (deployment_spec.get("strategy") or {}).get("rollingUpdate") or {}
    replicas = deployment_spec["replicas"]
    surge = math.ceil(_share(stated.get("maxSurge", 0), replicas))
    unavailable = math.floor(_share(stated.get("maxUnavailable", 0), replicas))
    return Limits(surge, 1 if surge == 0 and unavailable == 0 else unavailable)


def _share(value: int | str, replicas: int) -> float:
    return value if isinstance(value, int) else int(value.removesuffix("%")) * replicas / 100


def scale_up(new: Count, old: list[Count], replicas: int, limits: Limits) -> int:
    """What the new replica set should be at now."""
    if new.wanted >= replicas:
        return replicas
    room = replicas + limits.surge - new.wanted - sum(count.wanted for count in old)
    return min(replicas, new.wanted + max(0, room))


def scale_down(new: Count, old: list[Count], replicas: int, limits: Limits) -> dict[str, int]:
    """What the old ones should be at now: pods that are not available go first, others as availability allows."""
    least = replicas - limits.unavailable
    total = new.wanted + sum(count.wanted for count in old)
    spare = total - least - (new.wanted - new.available)
    targets = {count.name: count.wanted for count in old}
    if spare <= 0:
        return targets
    for count in old:
        sick = min(spare, count.wanted - count.available)
        targets[count.name] -= sick
        spare -= sick
    available = new.available + sum(count.available for count in old)
    healthy = min(spare, available - least)
    for count in old:
        gone = min(max(0, healthy), targets[count.name])
        targets[count.name] -= gone
        healthy -= gone
    return targets
