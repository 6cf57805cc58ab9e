"""Amounts and shares as text, and the reasons that several planners use."""

from __future__ import annotations

from collections.abc import Iterable

PENDING = "pending: it has no node"

NOT_BETTER = "stays: moving would not be better than doing nothing"

NOBODY_MOVES = "no running pod is moved"

NO_ROOM = "some pods would find no room by their requests"

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def amount(axis: str, value: float) -> str:
    if axis in ("memory", "ephemeral-storage"):
        return f"{_bytes(value)} {axis}"
    return f"{value:.3g} {axis}"


def percent(share: float) -> str:
    """With a tenth where rounding would hide whether a limit is exceeded."""
    shown = share * 100
    return f"{shown:.0f} %" if abs(shown - round(shown)) < 0.05 else f"{shown:.1f} %"


def shares(axes: Iterable[str], values: Iterable[float]) -> str:
    return ", ".join(f"{axis} {percent(value)}" for axis, value in zip(axes, values, strict=True))


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def may_not_stay(node: str, why: str) -> str:
    return f"may not stay on {node}: {why}"


def unhappy_on(node: str, load: str) -> str:
    return f"unhappy on {node}, which is at {load}"


def nearer_fit(node: str, there: float, here: float, inertia: float) -> str:
    return f"nearer fit than {node}: distance {there:.2f} against {here:.2f}, inertia {inertia:g}"


def makes_room(node: str, found: str = "") -> str:
    """`found`: the obstacle there."""
    return f"makes room: {node} is left to pods that rank higher" + (f" ({found})" if found else "")


def degraded(given: float | None, wanted: float) -> str:
    if given is None:
        return "degraded: no node has room for its peak, this one ends least overloaded"
    return f"degraded: no node leaves {percent(wanted)} headroom, this one leaves {percent(given)}"


def _bytes(value: float) -> str:
    power = 0
    while value >= 1024 and power < len(_BINARY) - 1:
        value, power = value / 1024, power + 1
    return f"{value:.3g}{_BINARY[power]}"
