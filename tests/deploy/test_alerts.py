"""The alerts use metrics that the controller has, and each has a page that says what to do and a test that it fires."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadtests.chart import CHART
from reactor.record.metrics import Instruments

ROOT = Path(__file__).parents[2]
RULES = CHART / "files" / "alerts.yaml"
TESTS = Path(__file__).parent / "alerts" / "rules_test.yaml"
RUNBOOKS = ROOT / "docs" / "runbooks"
_SUFFIXES = ("", "_bucket", "_sum", "_count", "_total", "_info")
_SECONDS = 50.0
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not here: apt-get install --no-install-recommends prometheus"
)


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((CHART / "files" / "dashboard.json").read_text())["panels"]
    return found


def used_by(query: str) -> set[str]:
    return set(re.findall(r"\brematch_\w+", query))


@pytest.fixture(scope="module")
def exposed() -> set[str]:
    return {f"{family.name}{suffix}" for family in Instruments().registry.collect() for suffix in _SUFFIXES}


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_every_metric_of_the_rules_exists(alert: dict[str, Any], exposed: set[str]) -> None:
    assert used_by(alert["expr"])
    assert used_by(alert["expr"]) <= exposed


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: str(panel["title"]))
def test_every_metric_of_the_dashboard_exists(panel: dict[str, Any], exposed: set[str]) -> None:
    for target in panel["targets"]:
        assert used_by(target["expr"])
        assert used_by(target["expr"]) <= exposed


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_every_alert_has_a_summary_a_severity_and_a_page(alert: dict[str, Any]) -> None:
    page = ROOT / alert["annotations"]["runbook_url"]
    assert page.stem == alert["alert"]
    assert page.read_text().startswith(f"# {alert['alert']}\n")
    assert alert["annotations"]["summary"].endswith(".")
    assert alert["labels"]["severity"] in ("critical", "warning")


def test_every_page_belongs_to_an_alert() -> None:
    assert {page.stem for page in RUNBOOKS.glob("*.md")} == {alert["alert"] for alert in alerts()}


def test_every_alert_is_shown_to_fire_and_to_be_silent() -> None:
    cases = [case for test in yaml.safe_load(TESTS.read_text())["tests"] for case in test["alert_rule_test"]]
    names = {alert["alert"] for alert in alerts()}
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == names
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == names


@needs_promtool
@pytest.mark.parametrize(
    "command", [["check", "rules", str(RULES)], ["test", "rules", str(TESTS)]], ids=["check", "test"]
)
def test_promtool_accepts_the_rules_and_their_tests(command: list[str]) -> None:
    done = subprocess.run(["promtool", *command], capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
