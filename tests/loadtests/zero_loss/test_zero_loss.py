"""What the zero-loss experiment makes of the load tools' samples."""

from __future__ import annotations

from pathlib import Path

from loadtests.workloads.api import Changed
from loadtests.workloads.load_tools import LoadResult
from loadtests.workloads.samples import RequestOutcome, RequestSample
from loadtests.zero_loss.design import APPS, Way
from loadtests.zero_loss.report import write_report
from loadtests.zero_loss.results import Landed, Lane, Leg, Row, row
from loadtests.zero_loss.routes import PROXY_SECONDS, EmptyServices
from loadtests.zero_loss.run import Measured
from tests.support.clock import VirtualClock

MOVED = APPS[0]
APP = MOVED.app.name


def services(clock: VirtualClock) -> EmptyServices:
    return EmptyServices(None, "zero-loss", clock)  # type: ignore[arg-type]


def slices(*ready: bool) -> Changed:
    meta = {"name": f"{APP}-x", "labels": {"kubernetes.io/service-name": APP}}
    return Changed("MODIFIED", {"metadata": meta, "endpoints": [{"conditions": {"ready": each}} for each in ready]})


def result(*samples: tuple[float, float, RequestOutcome]) -> LoadResult:
    return LoadResult([RequestSample(APP, *sample) for sample in samples], 0.0, 0.0, 0.0)


def measured(empty: EmptyServices, *samples: tuple[float, float, RequestOutcome]) -> Row:
    landed = [
        Landed(APP, "node1", "node2", "node2", 5.0, "evict"),
        Landed(APP, "node2", "node3", "node2", 7.0, "evict"),
    ]
    leg = Leg(((Lane("k6", False), result(*samples)),))
    return row(Way.EVICT.value, MOVED, [leg], landed, empty)[0]


def test_failed_requests_are_told_apart_and_the_longest_gap_is_found() -> None:
    ok, refused = RequestOutcome.OK, RequestOutcome.REFUSED
    found = measured(
        services(VirtualClock()),
        *((0.0, 0.1, ok), (1.0, 2.0, refused), (2.0, 2.0, RequestOutcome.CLOSED)),
        *((3.0, 2.0, RequestOutcome.TIMEOUT), (4.0, 0.2, ok), (5.0, 0.1, ok)),
    )

    assert (found.refused, found.reset, found.no_endpoint, found.timeout) == (1, 1, 0, 1)
    assert (found.lost, found.failed, found.requests) == (2, 3, 6)
    assert found.longest_gap_ms == 4100
    assert (found.moves, found.as_planned, found.elsewhere, found.back) == (2, 1, 0, 1)
    assert found.strategies == "evict 2"


def test_a_request_refused_while_no_endpoint_was_ready_had_none() -> None:
    clock = VirtualClock()
    empty = services(clock)
    empty._heard(slices(True))
    empty._heard(slices(False))
    since = clock.now()

    assert empty.was_empty(APP, since)
    assert not empty.was_empty(APP, since - 1.0)
    empty._heard(slices(False, True))
    assert empty.was_empty(APP, since + PROXY_SECONDS)
    assert not empty.was_empty(APP, since + PROXY_SECONDS + 0.1)


def test_ways_of_an_earlier_run_stay_in_the_report(tmp_path: Path) -> None:
    evicted = measured(services(VirtualClock()), (0.0, 0.1, RequestOutcome.OK))
    chosen = row(Way.CHOSEN.value, MOVED, [], [], services(VirtualClock()))[0]
    write_report([Measured([evicted])], 10.0, tmp_path)
    write_report([Measured([chosen])], 10.0, tmp_path)

    lines = (tmp_path / "zero-loss.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["way", "chosen", "evict"]
    assert (tmp_path / "zero-loss.svg").exists()
