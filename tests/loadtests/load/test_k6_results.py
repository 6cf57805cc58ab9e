from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from loadtests.load.k6 import SCRIPT, parse_results, plan_of
from loadtests.load.load import Load, LoadToolError
from loadtests.tools import Missing, survey
from loadtests.tools.commands import run
from loadtests.workloads.load_summary import Outcome

URLS = {"a": "http://127.0.0.1:8080/"}
LOAD = Load(URLS, 2.0, 2.0, 2.0, "127.0.0.0/8")


def point(second: float, outcome: str = "ok", app: str = "a", metric: str = "lab_request", value: float = 10.0) -> str:
    time = f"2026-01-01T00:00:{second:09.6f}Z"
    data = {"time": time, "value": value, "tags": {"app": app, "outcome": outcome}}
    return json.dumps({"type": "Point", "metric": metric, "data": data})


def test_points_of_our_metric_become_samples() -> None:
    other = json.dumps({"type": "Metric", "metric": "http_reqs", "data": {"name": "http_reqs"}})
    text = "\n".join([other, point(1.01), point(1.51, "timeout"), point(2.01, "closed"), point(2.51, "refused")])
    result = parse_results(text, LOAD)
    assert [one.outcome for one in result.samples] == [Outcome.OK, Outcome.TIMEOUT, Outcome.CLOSED, Outcome.REFUSED]
    assert [round(one.start, 3) for one in result.samples] == [0.0, 0.5, 1.0, 1.5]
    assert [one.latency for one in result.samples] == [0.01, 2.0, 2.0, 2.0]
    assert result.began == pytest.approx(datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC).timestamp())
    assert result.late_ms == pytest.approx(0.0, abs=0.01)


def test_lateness_is_told_app_by_app() -> None:
    """Both apps are due together, twice a second; of each the later requests are 20 ms late."""
    load = Load(URLS | {"b": "http://127.0.0.2:8080/"}, 2.0, 1.0, 2.0, "127.0.0.0/8")
    points = [point(second, app=app) for app in "ba" for second in (1.52, 1.0)]
    assert parse_results("\n".join(points), load).late_ms == pytest.approx(10.0, abs=0.01)


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


def test_the_plan_gives_whole_numbers_to_k6() -> None:
    plan = json.loads(plan_of(LOAD))
    assert (plan["per1000s"], plan["milliseconds"], plan["timeoutMs"]) == (2000, 2000, 2000)
    assert plan["urls"] == dict(LOAD.urls)


async def test_k6_takes_the_script() -> None:
    (k6,) = await survey(["k6"])
    if isinstance(k6, Missing):
        pytest.skip("k6 is neither on the PATH nor in the cache")
    assert "constant-arrival-rate" in await run([str(k6.path), "inspect", str(SCRIPT)], deadline=30.0)
