"""The images of the lab: the apps (one static Go binary), and the controller from this clone and its packages."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from loadtests.images.archive import File, Image, read_layer, write_image, write_layer
from loadtests.images.python_tree import HOME, PACKAGES, interpreter, packages, shared_libraries, sources
from loadtests.tools.building import find_go
from loadtests.tools.cache import Cache
from loadtests.tools.processes import Progress, run

SOURCES = Path(__file__).parent / "apps"
APP_IMAGE = "lab.local/apps:1"
PAUSE_IMAGE = "lab.local/pause:1"
_BUILD_SECONDS = 300.0


CONTROLLER_IMAGE = "docker.io/library/rematch:0.1.0"
"""As deploy/rematch.yaml names it, spelt out the way a kubelet asks for it."""
RUNTIME_LOCK = "requirements-runtime.lock"
"""As deploy/Dockerfile installs it."""
_PACKAGES = ("matching", "predictors", "storage", "reactor")
_START = ("-c", "from reactor.cli.main import main; main()")


@dataclass(frozen=True, slots=True)
class AppImages:
    binary: Path
    """Also process 1 of a node, as `apps pause`."""
    archives: tuple[Path, ...]


async def app_images(cache: Cache, progress: Progress) -> AppImages:
    folder = cache.sources(f"apps-{_version_of_sources()}")
    binary, apps, pause = folder / "apps", folder / "apps.tar", folder / "pause.tar"
    async with cache.alone(folder.name, lambda: progress("apps: another run builds them")):
        if not pause.exists():
            progress("apps: building their image; usually 10 s")
            go = await find_go(cache, progress)
            command = [str(go), "build", "-trimpath", "-ldflags=-s -w", "-o", str(binary), "."]
            await run(command, deadline=_BUILD_SECONDS, folder=SOURCES, env={"CGO_ENABLED": "0", "GOWORK": "off"})
            layer = write_layer(folder / "layer.tar", [File("/apps", binary)])
            write_image(apps, Image(APP_IMAGE, (layer,), ("/apps",)))
            write_image(pause, Image(PAUSE_IMAGE, (layer,), ("/apps", "pause")))
    return AppImages(binary, (apps, pause))


def _version_of_sources() -> str:
    text = hashlib.sha256()
    for source in sorted(SOURCES.iterdir()):
        text.update(source.name.encode() + source.read_bytes())
    return text.hexdigest()[:12]


async def controller_image(clone: Path, cache: Cache, progress: Progress) -> Path:
    lock = clone / RUNTIME_LOCK
    version = hashlib.sha256(lock.read_bytes() + sys.version.encode() + sys.executable.encode()).hexdigest()[:12]
    folder = cache.sources(f"controller-{version}")
    async with cache.alone(folder.name, lambda: progress("controller image: another run builds it")):
        tar = folder / "dependencies.tar"
        if not tar.exists():
            progress("controller image: packing interpreter and packages; usually 30 s")
            await _pack_dependencies(tar, lock)
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


async def _pack_dependencies(tar: Path, lock: Path) -> None:
    files = {file.path: file for file in (*interpreter(), *packages(lock))}
    files |= {file.path: file for file in await shared_libraries(files.values())}
    unfinished = tar.with_name(f".{tar.name}.unfinished")
    write_layer(unfinished, files.values())
    unfinished.rename(tar)


def _metadata() -> list[File]:
    """Planners are found by the entry points in the distribution's metadata."""
    wanted = ("METADATA", "entry_points.txt")
    parts = [part for part in distribution("rematch").files or () if part.name in wanted]
    return [File(f"{PACKAGES}/{part}", Path(str(part.locate()))) for part in parts]
