from __future__ import annotations

import pytest
from click.testing import CliRunner

from loadtests.commands import lab


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--seeds", "0"), "needs at least 3 seeds"),
        (("--no-real", "--no-simulated"), "leaves nothing to run"),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_reason(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(lab, ["experiment", "stable", *arguments])
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
