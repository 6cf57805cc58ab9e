"""`rematch` as a function, for every test of the command line."""

from __future__ import annotations

import pytest

from tests.support.command import Command, command


@pytest.fixture
def rematch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return command(monkeypatch, capsys)
