"""Rolling updates: the hash of a pod template, and how far an update may go in one step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from loadtests.embedded.objects import NAME_ALPHABET
from loadtests.embedded.resources import Json

HASH_LABEL = "pod-template-hash"


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


def template_hash(template: Json) -> str:
    """FNV-1a over the template's JSON in key order. The real one hashes Go's memory layout: only the form agrees."""
    value = 0x811C9DC5
    for byte in msgspec.json.encode(template, order="sorted"):
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(NAME_ALPHABET[ord(digit) % len(NAME_ALPHABET)] for digit in str(value))


def same_template(replica_set: Json, deployment: Json) -> bool:
    return _bare(replica_set["spec"]["template"]) == _bare(deployment["spec"]["template"])


def _bare(template: Json) -> Json:
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}
