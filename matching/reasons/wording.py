"""Amounts and shares as people write them."""

from __future__ import annotations

from collections.abc import Iterable

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def amount(axis: str, value: float) -> str:
    if axis in ("memory", "ephemeral-storage"):
        return f"{_bytes(value)} {axis}"
    return f"{value:.3g} {axis}"


def percent(share: float) -> str:
    """A tenth is shown where rounding would hide that a limit is passed or kept."""
    shown = share * 100
    return f"{shown:.0f} %" if abs(shown - round(shown)) < 0.05 else f"{shown:.1f} %"


def shares(axes: Iterable[str], values: Iterable[float]) -> str:
    return ", ".join(f"{axis} {percent(value)}" for axis, value in zip(axes, values, strict=True))


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _bytes(value: float) -> str:
    power = 0
    while value >= 1024 and power < len(_BINARY) - 1:
        value, power = value / 1024, power + 1
    return f"{value:.3g}{_BINARY[power]}"
