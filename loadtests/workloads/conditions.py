"""What an object's status says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def has_condition(item: Mapping[str, Any], kind: str, status: str = "True") -> bool:
    """Of a pod or a node as the API server gives it, which may have no status yet."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return any(each["type"] == kind and each["status"] == status for each in conditions)
