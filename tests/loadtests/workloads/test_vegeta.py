from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from loadtests.workloads.load_tools import ClosedLoad, Load, LoadToolError
from loadtests.workloads.samples import RequestOutcome
from loadtests.workloads.targets import ForeignAddressError
from loadtests.workloads.vegeta import Vegeta, parse_results, targets_file

URLS = {"a": "http://127.0.0.1:8080/", "b": "http://127.0.0.2:8080/"}


def make_load(**changes: float) -> Load:
    given = {"rate": 1.0, "seconds": 2.0, "timeout": 2.0} | changes
    return Load(URLS, given["rate"], given["seconds"], given["timeout"], "127.0.0.0/8")


def hit(seq: int, app: str, code: int = 200, error: str = "", second: float = 0.0) -> str:
    stamp = f"2026-01-01T00:00:{second:09.6f}+01:00"
    return json.dumps(
        {"attack": "", "seq": seq, "code": code, "timestamp": stamp, "latency": 5_000_000, "bytes_out": 0,
         "bytes_in": 2, "error": error, "body": "", "method": "GET", "url": URLS[app], "headers": None}
    )  # fmt: skip


def test_every_hit_becomes_a_sample_of_its_app() -> None:
    lines = [hit(0, "a"), hit(2, "a", 500, "500", 1.0), hit(1, "b", 0, "x: context deadline exceeded", 0.5)]
    result = parse_results(
        "\n".join([*lines, hit(3, "b", 0, "dial tcp: connect: connection refused", 1.5)]), make_load()
    )
    assert [(one.app, one.outcome) for one in result.samples] == [
        ("a", RequestOutcome.OK),
        ("b", RequestOutcome.TIMEOUT),
        ("a", RequestOutcome.ERROR_STATUS),
        ("b", RequestOutcome.REFUSED),
    ]
    assert [one.latency for one in result.samples] == [0.005, 2.0, 2.0, 2.0]
    assert [one.start for one in result.samples] == [0.0, 0.5, 1.0, 1.5]
    assert result.late_ms == pytest.approx(0.0)
    assert result.began == datetime(2025, 12, 31, 23, tzinfo=UTC).timestamp()


def test_lateness_is_told() -> None:
    late = [hit(number, "ab"[number % 2], second=number * 0.5 + 0.02 * min(number, 1)) for number in range(4)]
    assert parse_results("\n".join(late), make_load()).late_ms == pytest.approx(15.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not as expected"),
        (hit(0, "a").replace(URLS["a"], "http://127.0.0.9/"), "no target"),
        (hit(0, "a"), "1 requests were sent instead of 8"),
        ("\n".join(hit(number, "a", 0, "what is this") for number in range(8)), "not known here"),
    ],
)
def test_what_is_not_a_result_is_refused(text: str, says: str) -> None:
    with pytest.raises(LoadToolError, match=says):
        parse_results(text, make_load(rate=2.0))


def test_load_goes_to_the_run_s_own_network_only() -> None:
    with pytest.raises(ForeignAddressError, match="refusing"):
        Load({"a": "http://192.0.2.1/"}, 1.0, 1.0, 1.0, "10.201.0.0/16")


def test_requests_that_were_not_sent_are_told_as_a_share() -> None:
    load = make_load(rate=50.0)
    assert load.unsent(200, 1) == 0.0
    assert load.unsent(199, 1) == 0.0
    assert load.unsent(150, 1) == pytest.approx(0.245)
    assert load.unsent(150, 2) == pytest.approx(0.24)
    with pytest.raises(LoadToolError, match="instead of 200"):
        load.unsent(40, 1)


async def test_a_program_that_fails_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "vegeta"
    broken.write_text("#!/bin/sh\necho out of cheese >&2\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(LoadToolError, match="out of cheese"):
        await Vegeta(broken).attack(make_load())


def test_the_targets_come_in_turn() -> None:
    assert targets_file(make_load()).splitlines() == [f"GET {url}" for url in URLS.values()]


def test_requests_go_to_the_apps_in_the_order_that_is_given() -> None:
    first, second = URLS
    lines = targets_file(make_load(), (second, first, second)).splitlines()
    assert lines == [f"GET {URLS[app]}" for app in (second, first, second)]


@pytest.mark.parametrize(
    ("connections", "options"), [(0, []), (8, ["-workers=8", "-max-workers=8"])], ids=["as needed", "eight"]
)
async def test_connections_can_be_limited(
    tmp_path: Path, connections: int, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def kept(command: list[str], **_: object) -> str:
        asked.extend(command)
        return "\n".join(hit(number, "ab"[number % 2]) for number in range(4))

    monkeypatch.setattr("loadtests.workloads.vegeta.run", kept)
    await Vegeta(tmp_path / "vegeta", connections=connections).attack(make_load())
    assert [each for each in asked if "workers" in each] == options


async def test_a_closed_load_has_as_many_requests_at_a_time_as_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def kept(command: list[str], **_: object) -> str:
        asked.extend(command)
        return "\n".join([hit(0, "a"), hit(1, "b", 0, "EOF")])

    monkeypatch.setattr("loadtests.workloads.vegeta.run", kept)
    samples = await Vegeta(tmp_path / "vegeta").attack_closed(ClosedLoad(URLS, 25, 1.0, 2.0, "127.0.0.0/8"))
    assert {"-rate=0", "-workers=25", "-max-workers=25"} <= set(asked)
    assert [sample.outcome for sample in samples] == [RequestOutcome.OK, RequestOutcome.CLOSED]
    with pytest.raises(ForeignAddressError):
        ClosedLoad({"a": "http://192.0.2.1/"}, 1, 1.0, 1.0, "127.0.0.0/8")
