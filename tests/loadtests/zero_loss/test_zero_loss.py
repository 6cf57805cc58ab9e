"""What the zero-loss experiment makes of the load tools' samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadtests.workloads.api import Changed
from loadtests.workloads.load_tools import LoadResult
from loadtests.workloads.samples import RequestOutcome, RequestSample
from loadtests.zero_loss.design import APPS, Way
from loadtests.zero_loss.moving import Landed
from loadtests.zero_loss.report import add_moves, forget_details, rows_in, together, write_report
from loadtests.zero_loss.results import Lane, Leg, Row, failed_requests, row
from loadtests.zero_loss.routes import PROXY_SECONDS, EmptyServices
from loadtests.zero_loss.run import Measured, moves_left
from reactor.errors import InputError
from tests.support.clock import VirtualClock

MOVED = APPS[0]
APP = MOVED.app.name
Sample = tuple[float, float, RequestOutcome]


def services(clock: VirtualClock) -> EmptyServices:
    return EmptyServices(None, "zero-loss", clock)  # type: ignore[arg-type]


def slices(*ready: bool) -> Changed:
    meta = {"name": f"{APP}-x", "labels": {"kubernetes.io/service-name": APP}}
    return Changed("MODIFIED", {"metadata": meta, "endpoints": [{"conditions": {"ready": each}} for each in ready]})


def landed(source: str, target: str, node: str, seconds: float) -> Landed:
    return Landed(APP, source, target, node, "evict", 0.0, 1.0, None, 1.0 + seconds)


MOVES = (landed("node1", "node2", "node2", 5.0), landed("node2", "node3", "node2", 7.0))


def leg_of(*samples: Sample, moves: tuple[Landed, ...] = MOVES) -> Leg:
    result = LoadResult([RequestSample(APP, *sample) for sample in samples], 0.0, 3.0, 0.0)
    return Leg(((Lane("k6", False), result),), moves)


def measured(*samples: Sample, way: Way = Way.EVICT) -> Row:
    leg = leg_of(*samples)
    return row(way.value, MOVED, leg, failed_requests(way.value, APP, leg, services(VirtualClock())))


OK = (0.0, 0.1, RequestOutcome.OK)


def test_failed_requests_are_told_apart_and_the_longest_gap_is_found() -> None:
    ok, refused = RequestOutcome.OK, RequestOutcome.REFUSED
    found = measured(
        *((0.0, 0.1, ok), (1.0, 2.0, refused), (2.0, 2.0, RequestOutcome.CLOSED)),
        *((3.0, 2.0, RequestOutcome.TIMEOUT), (4.0, 0.2, ok), (5.0, 0.1, ok)),
    )

    assert (found.refused, found.reset, found.no_endpoint, found.timeout) == (1, 1, 0, 1)
    assert (found.lost, found.failed, found.requests) == (2, 3, 6)
    assert found.longest_gap_ms == 4100
    assert (found.moves, found.as_planned, found.elsewhere, found.back) == (2, 1, 0, 1)
    assert found.strategies == {"evict": 2}
    assert (found.move_seconds, found.slowest_move, found.late_ms) == (12.0, 7.0, 3.0)


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


def test_legs_add_up_and_their_longest_gap_counts() -> None:
    lost = measured((0.0, 0.1, RequestOutcome.OK), (1.0, 2.0, RequestOutcome.REFUSED), (3.0, 0.1, RequestOutcome.OK))
    quiet = measured(OK, (0.2, 0.1, RequestOutcome.OK))
    other_way = measured(OK, way=Way.PLAIN)

    found, other = together([lost, other_way], [quiet])

    assert (found.moves, found.requests, found.refused, found.back) == (4, 5, 1, 2)
    assert found.strategies == {"evict": 4}
    assert (found.longest_gap_ms, found.move_seconds, found.slowest_move) == (3000, 24.0, 7.0)
    assert other == other_way


def test_a_resumed_run_makes_the_moves_that_are_missing() -> None:
    done = [measured(OK)]
    left = moves_left(APPS, 20, Way.EVICT, done)
    assert left[APP] == 18
    assert left["exits-2"] == 40
    assert moves_left(APPS, 20, Way.CHOSEN, done)[APP] == 20


def test_ways_of_an_earlier_run_stay_in_the_report(tmp_path: Path) -> None:
    write_report(Measured([measured(OK)]), 10.0, tmp_path)
    write_report(Measured([measured(OK, way=Way.CHOSEN)]), 10.0, tmp_path)

    assert [each.way for each in rows_in(tmp_path)] == ["chosen", "evict"]
    lines = (tmp_path / "zero-loss.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["way", "chosen", "evict"]
    assert "| chosen (evict 2) |" in (tmp_path / "table.md").read_text()
    assert (tmp_path / "zero-loss.svg").exists()


def test_a_damaged_report_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "zero-loss.json").write_text('[{"way": "chosen"')
    with pytest.raises(InputError, match=r"zero-loss\.json is damaged"):
        rows_in(tmp_path)


def test_the_moves_of_all_legs_are_listed(tmp_path: Path) -> None:
    add_moves(Measured(landed=[("evict", MOVES[0])]), tmp_path)
    add_moves(Measured(landed=[("evict", MOVES[1])]), tmp_path)

    lines = (tmp_path / "moves.csv").read_text().splitlines()
    assert lines[0].startswith("way,app,source,target,node")
    assert [line.split(",")[:5] for line in lines[1:]] == [
        ["evict", APP, "node1", "node2", "node2"],
        ["evict", APP, "node2", "node3", "node2"],
    ]


def test_only_the_moves_of_ways_that_are_measured_anew_are_forgotten(tmp_path: Path) -> None:
    add_moves(Measured(landed=[("evict", MOVES[0]), ("chosen", MOVES[1])]), tmp_path)
    forget_details([Way.EVICT], tmp_path)

    lines = (tmp_path / "moves.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["way", "chosen"]
