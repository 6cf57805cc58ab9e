"""Two versions of the project at once: a git worktree and a light virtual environment for each.

An environment borrows the packages of the running interpreter, so that nothing is downloaded. Both versions get an
environment of the same kind: otherwise the longer search path of one would show in its start-up time.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reactor.errors import InputError, RematchError

_CLONE = Path(__file__).parents[2]
_INSTALL_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Version:
    name: str
    commit: str
    python: Path
    tree: Path
    """The files that are installed in its environment."""

    @property
    def rematch(self) -> Path:
        return self.python.with_name("rematch")


@contextmanager
def two_versions(revision: str) -> Iterator[tuple[Version, Version]]:
    """The revision, and this clone as it is on disk; whatever was made for them is removed at the end."""
    commit = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", problem=f"{revision}: no such revision")
    with tempfile.TemporaryDirectory(prefix="rematch-against-") as made:
        folder = Path(made)
        tree = folder / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(tree), commit, problem=f"{revision} cannot be checked out")
        try:
            old = Version("old", commit, _environment(folder / "old", tree), tree)
            new = Version("new", _here(), _environment(folder / "new", _CLONE), _CLONE)
            yield old, new
        finally:
            _git("worktree", "remove", "--force", str(tree), problem=f"{tree} was not removed from git's worktrees")


def _here() -> str:
    commit = _git("rev-parse", "HEAD", problem="this is no clone")
    return f"{commit} with changes" if _git("status", "--porcelain", problem="this is no clone") else commit


def _environment(folder: Path, tree: Path) -> Path:
    """The path of its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python3*/site-packages")
    borrowed = [path for path in sys.path if path.rstrip("/").endswith("site-packages")]
    (packages / "zz_borrowed.pth").write_text("".join(f"{path}\n" for path in borrowed))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check"]
    command = [*pip, "--no-deps", "--no-build-isolation", "--no-index", "--editable", str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
    if done.returncode:
        raise RematchError(f"{tree} cannot be installed: {done.stderr.strip()[-500:]}")
    return python


def _git(*arguments: str, problem: str) -> str:
    done = subprocess.run(["git", "-C", str(_CLONE), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"{problem} {done.stderr.strip()[-300:]}".strip())
    return done.stdout.strip()
