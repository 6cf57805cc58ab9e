"""The controller's image without Docker: this interpreter and what `rematch` needs, then the clone's own packages.

The dependencies are a layer of their own, made once per lock file and interpreter; a change of ours is a small layer.
"""

from __future__ import annotations

import hashlib
import sys
from importlib.metadata import distribution
from pathlib import Path

from loadtests.images.archive import File, Image, read_layer, write_image, write_layer
from loadtests.images.python_tree import HOME, PACKAGES, interpreter, packages, shared_libraries, sources
from loadtests.tools.cache import Cache
from loadtests.tools.saying import Say

CONTROLLER_IMAGE = "docker.io/library/rematch:0.1.0"
"""As deploy/rematch.yaml names it, spelt out the way a kubelet asks for it."""
_PACKAGES = ("matching", "predictors", "storage", "reactor")
_START = ("-c", "from reactor.cli.main import main; main()")


async def controller_image(clone: Path, cache: Cache, say: Say) -> Path:
    lock = (clone / "requirements.lock").read_bytes()
    version = hashlib.sha256(lock + sys.version.encode() + sys.executable.encode()).hexdigest()[:12]
    folder = cache.sources(f"controller-{version}")
    async with cache.alone(folder.name, lambda: say("controller image: another run builds it")):
        tar = folder / "dependencies.tar"
        if not tar.exists():
            say("controller image: packing interpreter and packages; usually 30 s")
            await _pack_dependencies(tar)
        base = read_layer(tar)
        ours = write_layer(folder / "ours.tar", [*sources(clone, _PACKAGES), *_metadata()])
        environment = {
            "PYTHONHOME": HOME,
            "PYTHONPATH": PACKAGES,
            "LD_LIBRARY_PATH": f"{HOME}/{sys.platlibdir}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "HOME": "/tmp",
        }
        entrypoint = (f"{HOME}/bin/python3", *_START)
        image = Image(CONTROLLER_IMAGE, (base, ours), entrypoint, environment=environment)
        path = folder / f"rematch-{ours.digest[:12]}.tar"
        for older in set(folder.glob("rematch-*.tar")) - {path}:
            older.unlink()
        return path if path.exists() else write_image(path, image)


async def _pack_dependencies(tar: Path) -> None:
    files = {file.path: file for file in (*interpreter(), *packages("rematch"))}
    files |= {file.path: file for file in await shared_libraries(files.values())}
    unfinished = tar.with_name(f".{tar.name}.unfinished")
    write_layer(unfinished, files.values())
    unfinished.rename(tar)


def _metadata() -> list[File]:
    """Planners are found by the entry points in the distribution's metadata."""
    wanted = ("METADATA", "entry_points.txt")
    parts = [part for part in distribution("rematch").files or () if part.name in wanted]
    return [File(f"{PACKAGES}/{part}", Path(str(part.locate()))) for part in parts]
