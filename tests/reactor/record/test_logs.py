from __future__ import annotations

import io
import json

import pytest
import structlog

from reactor.record.logs import configure_logs, cycle_context


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def test_every_line_of_a_cycle_carries_its_id(stream: io.StringIO) -> None:
    configure_logs(stream=stream)
    log = structlog.get_logger()

    with cycle_context() as cycle:
        log.info("plan", moves=2)
    with cycle_context() as other:
        log.info("wait")
    log.info("outside")

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line.get("cycle") for line in lines] == [cycle, other, None]
    assert cycle != other
    assert lines[0]["event"] == "plan"
    assert lines[0]["moves"] == 2
    assert {"level", "timestamp"} <= lines[0].keys()


def test_a_terminal_gets_readable_lines(stream: io.StringIO) -> None:
    configure_logs(json=False, stream=stream)

    structlog.get_logger().info("plan", moves=2)

    with pytest.raises(json.JSONDecodeError):
        json.loads(stream.getvalue())
    assert "plan" in stream.getvalue()


def test_the_level_is_kept(stream: io.StringIO) -> None:
    configure_logs(level="warning", stream=stream)

    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")

    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["loud"]


def test_an_exception_is_logged_without_what_was_in_its_variables(stream: io.StringIO) -> None:
    configure_logs(stream=stream)
    try:
        _fail("bearer-of-secrets")
    except ValueError:
        structlog.get_logger().exception("it failed")

    line = json.loads(stream.getvalue())
    assert line["exception"][0]["exc_type"] == "ValueError"
    assert "bearer-of-secrets" not in stream.getvalue()


def _fail(token: str) -> None:
    raise ValueError(len(token))
