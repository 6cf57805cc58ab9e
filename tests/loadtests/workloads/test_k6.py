from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from loadtests.tools import Missing, survey
from loadtests.tools.processes import run
from loadtests.workloads.k6 import (
    K6,
    SCRIPT,
    PodSource,
    falling_input,
    parse_results,
    parse_samples,
    pods_input,
    script_input,
)
from loadtests.workloads.load_generator import AppLoad, LoadPlan, RateStep
from loadtests.workloads.load_tools import FallingLoad, Load, LoadToolError
from loadtests.workloads.samples import RequestOutcome, summarise
from loadtests.workloads.targets import ForeignAddressError

URLS = {"a": "http://127.0.0.1:8080/"}
LOAD = Load(URLS, 2.0, 2.0, 2.0, "127.0.0.0/8")
PLAN = LoadPlan((AppLoad("web", (RateStep(0, 2), RateStep(10, 8.5))), AppLoad("api", (RateStep(0, 5),))), 1, 30)
PODS = PodSource("http://127.0.0.1:9999", "shop", 8080)


def point(second: float, outcome: str = "ok", app: str = "a", metric: str = "lab_request", value: float = 10.0) -> str:
    time = f"2026-01-01T00:00:{second:09.6f}Z"
    data = {"time": time, "value": value, "tags": {"app": app, "outcome": outcome}}
    return json.dumps({"type": "Point", "metric": metric, "data": data})


def test_points_of_our_metric_become_samples() -> None:
    other = json.dumps({"type": "Metric", "metric": "http_reqs", "data": {"name": "http_reqs"}})
    text = "\n".join([other, point(1.01), point(1.51, "timeout"), point(2.01, "closed"), point(2.51, "refused")])
    result = parse_results(text, LOAD)
    assert [one.outcome for one in result.samples] == [
        RequestOutcome.OK,
        RequestOutcome.TIMEOUT,
        RequestOutcome.CLOSED,
        RequestOutcome.REFUSED,
    ]
    assert [round(one.start, 3) for one in result.samples] == [0.0, 0.5, 1.0, 1.5]
    assert [one.latency for one in result.samples] == [0.01, 2.0, 2.0, 2.0]
    assert result.began == pytest.approx(datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC).timestamp())
    assert result.late_ms == pytest.approx(0.0, abs=0.01)


def test_lateness_is_measured_app_by_app() -> None:
    """Both apps are due together, twice a second; of each the later requests are 20 ms late."""
    load = Load(URLS | {"b": "http://127.0.0.2:8080/"}, 2.0, 1.0, 2.0, "127.0.0.0/8")
    points = [point(second, app=app) for app in "ba" for second in (1.52, 1.0)]
    assert parse_results("\n".join(points), load).late_ms == pytest.approx(10.0, abs=0.01)


def test_a_request_without_a_ready_pod_fails() -> None:
    text = "\n".join([point(1.0, "ok"), point(1.5, "noReadyPod", value=0.0)])
    summary = summarise(parse_samples(text, URLS, timeout=2.0))
    assert (summary.requests, summary.failures, summary.availability) == (2, 1, 0.5)
    assert summary.p99_ms == pytest.approx(2000.0, rel=0.02)


def test_the_demo_does_not_count_dropped_requests() -> None:
    text = "\n".join([point(1.0), point(1.5, metric="dropped_iterations", value=1.0)])
    assert len(parse_samples(text, URLS, timeout=2.0, may_drop=True)) == 1


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["{}"], "not as expected"),
        ([point(1.0, "splendid")], "not as expected"),
        ([point(1.0, app="z")], "no target"),
        ([point(1.0, metric="dropped_iterations")], "dropped"),
    ],
)
def test_what_is_not_a_result_is_refused(lines: list[str], says: str) -> None:
    with pytest.raises(LoadToolError, match=says):
        parse_results("\n".join(lines), LOAD)


def test_k6_is_given_whole_numbers() -> None:
    given = script_input(LOAD)
    scenario = given["scenarios"]["a"]
    assert (scenario["rate"], scenario["timeUnit"], scenario["duration"]) == (2000, "1000s", "2000ms")
    assert (given["timeoutMs"], given["urls"]) == (2000, dict(LOAD.urls))


def test_the_demo_load_has_the_rates_of_its_plan() -> None:
    given = pods_input(PLAN, PODS)
    web = given["scenarios"]["web"]
    assert [stage["target"] for stage in web["stages"]] == [120, 120, 510, 510]
    assert [stage["duration"] for stage in web["stages"]] == ["1ms", "9999ms", "1ms", "19999ms"]
    assert web["env"] == {"APP": "web"}
    assert given["timeoutMs"] == 2000
    assert given["pods"] == {"list": "http://127.0.0.1:9999/api/v1/namespaces/shop/pods", "port": 8080, "path": "/"}


async def test_a_program_that_writes_no_results_is_an_error(tmp_path: Path) -> None:
    program = tmp_path / "k6"
    program.write_text("#!/bin/sh\necho out of luck\n")
    program.chmod(0o755)
    with pytest.raises(LoadToolError, match="out of luck"):
        await K6(program).follow_pods(PLAN, PODS)


@pytest.mark.parametrize(
    ("given", "executor"),
    [(script_input(LOAD), "constant-arrival-rate"), (pods_input(PLAN, PODS), "ramping-arrival-rate")],
)
async def test_k6_takes_the_script(given: dict[str, object], executor: str) -> None:
    (k6,) = await survey(["k6"])
    if isinstance(k6, Missing):
        pytest.skip("k6 is neither on the PATH nor in the cache")
    command = [str(k6.path), "inspect", "-e", f"LOAD={json.dumps(given)}", str(SCRIPT)]
    assert executor in await run(command, deadline=30.0)


def test_a_falling_load_begins_at_its_top() -> None:
    load = FallingLoad({"a": "http://10.0.0.1/"}, 60.0, 300.0, 2.0, "10.0.0.0/24")
    (scenario,) = falling_input(load)["scenarios"].values()
    assert (scenario["startRate"], scenario["timeUnit"]) == (3600, "1m")
    assert scenario["stages"] == [{"target": 0, "duration": "300000ms"}]
    assert scenario["preAllocatedVUs"] >= 120, "every request of the first two seconds may run into its timeout"
    assert load.requests == 9000
    with pytest.raises(ForeignAddressError):
        FallingLoad({"a": "http://10.1.0.1/"}, 60.0, 300.0, 2.0, "10.0.0.0/24")
