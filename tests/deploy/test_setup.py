"""`make setup` shows what it does, in few lines, and fails when pip does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SECONDS = 30.0


def make_setup(folder: Path, pip: str) -> subprocess.CompletedProcess[str]:
    """With a Python that runs this script in place of pip."""
    python = folder / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/bash\n{pip}\n")
    python.chmod(0o755)
    command = ["make", "--no-print-directory", "-C", str(ROOT), "setup", f"VENV={folder}"]
    alone = {
        name: value for name, value in os.environ.items() if name != "MAKEFLAGS"
    }  # of the make that runs the tests
    return subprocess.run(command, env=alone, capture_output=True, text=True, timeout=_SECONDS, check=False)


def test_it_names_its_steps_and_counts_the_packages(tmp_path: Path) -> None:
    done = make_setup(
        tmp_path, "printf 'Collecting x\\n  Downloading x\\n%.0s' {1..45}; echo Installing collected packages: x"
    )
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("  ")][:3] == [
        f"  20 of {_packages()}",
        f"  40 of {_packages()}",
        "  all here, installing",
    ]
    assert [line.partition(": ")[2][:6] for line in lines if line.startswith("setup, ")] == [
        "1 of 3",
        "2 of 3",
        "3 of 3",
        "done",
    ]
    assert (tmp_path / ".ready").exists()


@pytest.mark.parametrize("step", ["--require-hashes", "--no-index"])
def test_a_failure_of_pip_is_a_failure(tmp_path: Path, step: str) -> None:
    done = make_setup(tmp_path, f'[[ " $* " == *" {step} "* ]] && {{ echo no such package >&2; exit 1; }}; exit 0')
    assert done.returncode != 0
    assert "no such package" in done.stderr
    assert not (tmp_path / ".ready").exists()


def _packages() -> int:
    return sum("==" in line for line in (ROOT / "requirements.lock").read_text().splitlines())
