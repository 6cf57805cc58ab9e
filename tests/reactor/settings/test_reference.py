"""docs/settings.md is what the schema says."""

from __future__ import annotations

from pathlib import Path

from reactor.settings.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == reference(), "run: .venv/bin/rematch config reference > docs/settings.md"


def test_every_setting_is_explained() -> None:
    rows = [line.split(" | ") for line in reference().splitlines() if line.startswith("| `")]
    silent = [row[0] for row in rows if not row[-1].strip(" |")]
    assert len(rows) > 40
    assert set(silent) <= {"| `apiVersion`", "| `kind`"}
