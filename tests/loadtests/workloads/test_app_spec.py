from __future__ import annotations

import pytest

from loadtests.workloads.app_spec import AppSpec, AppSpecError, parse_app_spec


def test_annotations_round_trip() -> None:
    spec = AppSpec(work_ms=37.5, workers=3, backlog=0, memory_mib=100)
    assert parse_app_spec(spec.annotations()) == spec


def test_foreign_annotations_and_silence_mean_the_defaults() -> None:
    assert parse_app_spec({"example.com/work-ms": "lots"}) == AppSpec()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("work-ms", "fast", "work-ms: 'fast' is not a number"),
        ("work-ms", "nan", "work-ms: 'nan' is not a number"),
        ("work-ms", "-1", "work-ms: '-1' is not a number"),
        ("workers", "2.5", "workers: '2.5' is not a whole number"),
        ("workers", "0", "workers must be positive"),
        ("wrok-ms", "10", "wrok-ms: unknown; use one of .*work-ms"),
        ("work-spread", "1", "work-spread: must be below 1"),
    ],
)
def test_what_cannot_be_used_is_named(name: str, value: str, words: str) -> None:
    with pytest.raises(AppSpecError, match=words):
        parse_app_spec({f"lab.rematch.io/{name}": value})
