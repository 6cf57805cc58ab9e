from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from loadtests.workloads.arrivals import AppLoad, RateStep
from loadtests.workloads.k6 import K6Error, PodSource, k6_script, parse_k6_summary, run_k6
from loadtests.workloads.load import LoadPlan
from loadtests.workloads.load_summary import LoadSummary

PLAN = LoadPlan((AppLoad("web", (RateStep(0, 2), RateStep(10, 8.5))), AppLoad("api", (RateStep(0, 5),))), 1, 30)
PODS = PodSource("http://127.0.0.1:9999", "shop")


def test_the_script_has_the_same_rates() -> None:
    script = k6_script(PLAN, PODS, Path("/state/summary.json"))
    found = re.search(r"const lab = (\{.*?\n\});", script, re.DOTALL)
    assert found is not None
    lab = json.loads(found[1])
    web = lab["scenarios"]["web"]
    assert [stage["target"] for stage in web["stages"]] == [120, 120, 510, 510]
    assert [stage["duration"] for stage in web["stages"]] == ["1ms", "9999ms", "1ms", "19999ms"]
    assert web["env"] == {"LAB_APP": "web"}
    assert lab["timeoutMs"] == 2000
    assert lab["pods"] == "http://127.0.0.1:9999/api/v1/namespaces/shop/pods"


def test_a_summary_as_k6_writes_it() -> None:
    metrics = {
        "http_reqs": {"type": "counter", "contains": "default", "values": {"count": 1200, "rate": 40.1}},
        "lab_ok": {"type": "rate", "contains": "default", "values": {"rate": 0.98, "passes": 980, "fails": 20}},
        "lab_latency_ms": {
            "type": "trend",
            "contains": "default",
            "values": {"p(50)": 21.5, "p(95)": 180.25, "p(99)": 2000},
        },
    }
    assert parse_k6_summary(metrics) == LoadSummary(1000, 20, 0.98, 21.5, 180.25, 2000.0)


def test_a_summary_without_our_metrics_is_an_error() -> None:
    with pytest.raises(K6Error, match="lab_ok"):
        parse_k6_summary({"http_reqs": {}})


async def test_a_program_that_writes_no_summary_is_an_error(tmp_path: Path) -> None:
    program = tmp_path / "k6"
    program.write_text("#!/bin/sh\necho out of luck\n")
    program.chmod(0o755)
    with pytest.raises(K6Error, match="out of luck"):
        await run_k6(str(program), PLAN, PODS)
