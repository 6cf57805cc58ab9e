"""A `go` that builds nothing but answers like one, and a PATH with nothing else on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from loadtests.tools.cache import Cache

GO = """#!/bin/sh
echo "$@" >> "$FAKE_GO_LOG"
case "$1" in
  env) echo "${FAKE_GO_VERSION:-go1.26.1}" ;;
  mod) printf '{"GoMod": "%s", "Dir": "%s"}' "$FAKE_MODULE/go.mod" "$FAKE_MODULE" ;;
  build)
    [ -n "$FAKE_GO_FAILS" ] && { echo "no such package"; exit 1; }
    while [ "$1" != "-o" ]; do shift; done
    echo half > "$2"
    [ -n "$FAKE_GO_HANGS" ] && /bin/sleep 60
    echo whole > "$2" ;;
esac
"""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def put_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """The only programs there are."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def put(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(script)
        path.chmod(0o755)
        return path

    return put


@pytest.fixture
def go_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put_on_path: Callable[[str, str], Path]
) -> Callable[[], list[str]]:
    """What the fake go was asked for."""
    log, module = tmp_path / "go.log", tmp_path / "module"
    module.mkdir()
    (module / "go.mod").write_text("replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tother => ./other\n)\n")
    log.touch()
    monkeypatch.setenv("FAKE_GO_LOG", str(log))
    monkeypatch.setenv("FAKE_MODULE", str(module))
    put_on_path("go", GO)
    return lambda: log.read_text().splitlines()
