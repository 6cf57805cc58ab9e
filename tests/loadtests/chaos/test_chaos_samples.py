"""Flat or not: the trend over the second half decides, not the warm-up and not the noise."""

from __future__ import annotations

from loadtests.chaos.samples import Sample, rises


def samples(memory: list[float]) -> list[Sample]:
    return [Sample(5.0 * number, value, 20, 8, 30, 12.0) for number, value in enumerate(memory)]


def test_a_warm_up_is_no_leak() -> None:
    assert rises(samples([100 + min(number, 40) for number in range(100)])) == {}


def test_noise_is_no_leak() -> None:
    assert rises(samples([150 + (7 * number) % 13 for number in range(100)])) == {}


def test_a_leak_is_found() -> None:
    assert list(rises(samples([100 + number for number in range(100)]))) == ["memory_mib"]
