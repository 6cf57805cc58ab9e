"""The names that dashboards and alerts rely on."""

from __future__ import annotations

from math import isnan

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from reactor.cluster.decoding.decoder import MalformedObject
from reactor.cluster.kinds import CLUSTER_KINDS, Kind
from reactor.cluster.watch import WatchState
from reactor.cluster.writes import Binding, Eviction
from reactor.decision.decide import Trigger
from reactor.decision.wait_reasons import Reason
from reactor.errors import Expired, Unreachable
from reactor.record.metrics import Instruments
from reactor.record.move_checks import CheckedMoves
from reactor.record.recorder import WatchRecorder
from reactor.state.calibration import Calibration
from reactor.state.moves import ENDED
from storage.rows import LoadBinRow

UNITS = ("_seconds", "_bytes", "_ratio", "_total", "_info", "_celsius")


@pytest.fixture
def instruments() -> Instruments:
    return Instruments()


def exposed(instruments: Instruments) -> dict[str, str]:
    text = generate_latest(instruments.registry).decode()
    return {family.name: family.type for family in text_string_to_metric_families(text)}


def value(instruments: Instruments, name: str, **labels: str) -> float | None:
    return instruments.registry.get_sample_value(name, labels)


def test_names_follow_the_conventions(instruments: Instruments) -> None:
    text = generate_latest(instruments.registry).decode()
    typed = [line.split()[2:] for line in text.splitlines() if line.startswith("# TYPE")]

    assert len(typed) > 20
    for name, kind in typed:
        if name.endswith("_created"):
            continue
        assert name.startswith("rematch_")
        assert (kind == "counter") == name.endswith("_total"), name
        if kind == "histogram":
            assert name.endswith("_seconds"), name


def test_every_help_text_says_something(instruments: Instruments) -> None:
    assert all(len(family.documentation) > 10 for family in instruments.registry.collect())


def test_counts_since_the_start_are_counters(instruments: Instruments) -> None:
    since_start = [family for family in instruments.registry.collect() if "since the start" in family.documentation]

    assert [family.name for family in since_start if family.type != "counter"] == []


@pytest.mark.parametrize(
    ("name", "label", "values"),
    [
        ("rematch_cycles_total", "trigger", list(Trigger)),
        ("rematch_waits_total", "reason", list(Reason)),
        ("rematch_moves_total", "outcome", sorted(ENDED)),
        ("rematch_evictions_total", "answer", list(Eviction)),
        ("rematch_bindings_total", "answer", list(Binding)),
        ("rematch_settings_revisions_total", "result", ["accepted", "refused"]),
        ("rematch_watch_failures_total", "kind", list(CLUSTER_KINDS)),
        ("rematch_malformed_objects_total", "kind", list(CLUSTER_KINDS)),
        ("rematch_cycle_stage_duration_seconds_count", "stage", ["snapshot", "decide", "plan", "execute"]),
    ],
)
def test_series_are_there_before_anything_happens(
    instruments: Instruments, name: str, label: str, values: list[str]
) -> None:
    assert [value(instruments, name, **{label: each}) for each in values] == [0.0] * len(values)


def test_the_version_is_exposed(instruments: Instruments) -> None:
    assert b'rematch_build_info{version="' in generate_latest(instruments.registry)


def test_problems_of_the_watches_are_counted(instruments: Instruments) -> None:
    report = WatchRecorder(instruments)

    report.trouble(Kind.PODS, Unreachable("reset"), 0.5)
    report.trouble(Kind.PODS, Expired("410", status=410), 0.5)
    report.malformed(MalformedObject(Kind.NODES, "n1", "n1", "metadata", "missing"))

    assert value(instruments, "rematch_watch_failures_total", kind="pods") == 2
    assert value(instruments, "rematch_malformed_objects_total", kind="nodes") == 1


def test_ages_and_refusals_are_read_when_scraped(instruments: Instruments) -> None:
    ages = {Kind.PODS: 3.0, Kind.NODES: 4.0}
    refused: list[str] = []
    instruments.read_when_scraped(
        lambda: [WatchState(kind, lists=1, last_error="", denied=False, age=age) for kind, age in ages.items()],
        lambda: bool(refused),
        lambda: 2,
        lambda: 1,
    )
    assert value(instruments, "rematch_watch_age_seconds", kind="pods") == 3
    assert value(instruments, "rematch_settings_refused") == 0
    assert value(instruments, "rematch_pods_pending") == 2
    assert value(instruments, "rematch_pods_late") == 1

    ages[Kind.PODS] = 400.0
    refused.append("mode")

    assert value(instruments, "rematch_watch_age_seconds", kind="pods") == 400
    assert value(instruments, "rematch_settings_refused") == 1


def test_the_curve_and_how_well_it_foretells_are_exposed(instruments: Instruments) -> None:
    calibration = Calibration()
    checked: list[CheckedMoves] = []
    instruments.watch_calibration(calibration, lambda: checked[-1] if checked else None)

    assert value(instruments, "rematch_failure_curve", parameter="midpoint") == 1.02
    assert value(instruments, "rematch_failure_curve_probes") == 0
    assert isnan(value(instruments, "rematch_probe_failure_ratio", share="observed") or 0.0)

    calibration.restore([LoadBinRow(19, 200.0, 6.0, 195.0, 5.0, 0.0)], 0.0)
    checked.append(CheckedMoves(4, 3, 0.01, 0.02))

    assert value(instruments, "rematch_failure_curve_probes") == 200
    assert value(instruments, "rematch_probe_failure_ratio", share="expected") == 0.025
    assert value(instruments, "rematch_probe_failure_ratio", share="observed") == 0.03
    assert value(instruments, "rematch_moved_pod_failure_ratio", share="observed") == 0.02
