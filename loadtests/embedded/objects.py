"""Helpers to read and copy Kubernetes objects as dicts."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from loadtests.embedded.resources import Json

NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes builds generated name suffixes and template hashes from: no vowels, no look-alikes."""


def timestamp(now: float) -> str:
    return _timestamp(int(now))


@lru_cache(maxsize=64)  # very many objects are created and measured in the same second
def _timestamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds(stamp: str | None) -> float:
    """Seconds since the epoch of an API timestamp; 0 when it is unset or unreadable."""
    if not stamp:
        return 0.0
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return 0.0


def name_of(obj: Json) -> str:
    return str(obj["metadata"].get("name", ""))


def namespace_of(obj: Json) -> str:
    return str(obj["metadata"].get("namespace", ""))


def uid_of(obj: Json) -> str:
    return str(obj["metadata"].get("uid", ""))


def labels_of(obj: Json) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Json) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def spec_of(obj: Json) -> Json:
    return obj.get("spec") or {}


def status_of(obj: Json) -> Json:
    return obj.get("status") or {}


def is_deleting(obj: Json) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def controller_of(obj: Json) -> Json | None:
    """The owner reference that says `controller: true`."""
    references: Iterable[Json] = obj["metadata"].get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), None)


def owner_reference(api_version: str, kind: str, owner: Json) -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition_of(obj: Json, kind: str) -> Json | None:
    conditions: Iterable[Json] = status_of(obj).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def with_condition(status: Json, condition: Json) -> Json:
    """The status with this condition; its transition time stays when its status does, as everywhere in Kubernetes."""
    kept = [known for known in status.get("conditions") or () if known.get("type") != condition["type"]]
    before = next((known for known in status.get("conditions") or () if known.get("type") == condition["type"]), None)
    if before is not None and before.get("status") == condition["status"] and "lastTransitionTime" in before:
        condition = {**condition, "lastTransitionTime": before["lastTransitionTime"]}
    return {**status, "conditions": [*kept, condition]}


def is_ready(obj: Json) -> bool:
    """Of a pod or a node: its Ready condition is True."""
    condition = condition_of(obj, "Ready")
    return condition is not None and condition.get("status") == "True"


def is_finished(pod: Json) -> bool:
    return status_of(pod).get("phase") in ("Succeeded", "Failed")


def is_active(pod: Json) -> bool:
    """What a ReplicaSet counts: neither finished nor on its way out."""
    return not is_finished(pod) and not is_deleting(pod)


def changed(obj: Json, **parts: Any) -> Json:
    """A copy with these top-level parts replaced: `changed(pod, status=new_status)`."""
    return {**obj, **parts}


def with_metadata(obj: Json, **parts: Any) -> Json:
    """A copy with these metadata fields replaced; None removes one."""
    metadata = {**obj["metadata"], **parts}
    return {**obj, "metadata": {key: value for key, value in metadata.items() if value is not None}}


def random_suffix(rng: random.Random, length: int = 5) -> str:
    return "".join(rng.choice(NAME_ALPHABET) for _ in range(length))
