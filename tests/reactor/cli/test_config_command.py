from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from reactor.cli.main import cli


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.yaml"
    path.write_text("mode: act\nmanaged: {anySchedulerNamespaces: [shop]}\n")
    return str(path)


@pytest.fixture
def bad(tmp_path: Path) -> str:
    path = tmp_path / "bad.yaml"
    path.write_text("mode: maybe\nhappiness: {threshold: 3}\n")
    return str(path)


def test_good_files_are_ok(good: str) -> None:
    result = CliRunner().invoke(cli, ["config", "check", good, "-"], input="planner: {inertia: 0}\n")
    assert (result.exit_code, result.output) == (0, f"{good}: ok\nstdin: ok\n")


def test_every_error_of_every_file_is_printed(good: str, bad: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["config", "check", bad, good, str(tmp_path / "none.yaml"), "-"], input=b"\xff")
    assert result.exit_code == 2
    assert result.output.splitlines() == [
        f'{bad}: mode: must be one of observe, bind, act (got "maybe")',
        f"{bad}: happiness.threshold: must be between 0 and 1 (got 3)",
        f"{good}: ok",
        f"{tmp_path}/none.yaml: cannot be read: No such file or directory",
        "stdin: is not UTF-8 text (byte 0)",
    ]


def test_the_result_can_be_read_by_a_program(good: str, bad: str) -> None:
    result = CliRunner().invoke(cli, ["config", "check", "-o", "json", good, bad])
    assert result.exit_code == 2
    assert json.loads(result.output) == [
        {"file": good, "ok": True, "errors": [], "warnings": []},
        {
            "file": bad,
            "ok": False,
            "errors": [
                {"path": "mode", "message": 'must be one of observe, bind, act (got "maybe")'},
                {"path": "happiness.threshold", "message": "must be between 0 and 1 (got 3)"},
            ],
            "warnings": [],
        },
    ]


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("", ["empty: all defaults, mode observe"]),
        (
            "mode: act",
            [
                "managed.anySchedulerNamespaces: empty: only pods with `schedulerName: rematch` move; name the"
                " namespaces in which pods of other schedulers may move, too"
            ],
        ),
        ("managed: {namespaces: [kube-system, shop]}", ["managed.namespaces: kube-system is always excluded"]),
        ("execution: {strategies: []}", ["execution.strategies: empty: no running pod can be moved"]),
        ("mode: observe", []),
    ],
)
def test_what_is_valid_but_hardly_meant_is_a_warning(text: str, warnings: list[str]) -> None:
    result = CliRunner().invoke(cli, ["config", "check", "-"], input=text)
    assert result.exit_code == 0
    assert result.output.splitlines() == ["stdin: ok", *(f"stdin: warning: {warning}" for warning in warnings)]


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_shown_settings_have_every_default_and_are_good_settings(good: str, output: str) -> None:
    shown = CliRunner().invoke(cli, ["config", "show", "-o", output, good])
    assert shown.exit_code == 0
    document = yaml.safe_load(shown.output)
    assert (document["mode"], document["happiness"]["halfLife"]) == ("act", "5m")
    assert CliRunner().invoke(cli, ["config", "check", "-"], input=shown.output).output == "stdin: ok\n"


def test_without_a_file_the_defaults_are_shown() -> None:
    assert yaml.safe_load(CliRunner().invoke(cli, ["config", "show"]).output)["mode"] == "observe"


def test_showing_bad_settings_says_what_is_wrong(bad: str) -> None:
    result = CliRunner().invoke(cli, ["config", "show", bad])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "happiness.threshold: must be between 0 and 1 (got 3)" in result.stderr


def test_the_schema_knows_keys_bounds_and_durations() -> None:
    schema = json.loads(CliRunner().invoke(cli, ["config", "schema"]).output)
    happiness = schema["$defs"]["Happiness"]
    assert (happiness["properties"]["threshold"]["maximum"], happiness["additionalProperties"]) == (1, False)
    assert happiness["properties"]["halfLife"]["description"].startswith("After this time")
    assert [choice["type"] for choice in happiness["properties"]["halfLife"]["anyOf"]] == ["number", "string"]


def test_the_command_is_cheap_to_import() -> None:
    code = "import sys, reactor.cli.config; sys.exit(not {'pydantic', 'yaml'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
