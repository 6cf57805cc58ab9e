"""The apps' image: one static Go binary, built once per version of its sources. The lab's nodes need it, too."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from loadtests.images.archive import File, Image, write_image, write_layer
from loadtests.tools.cache import Cache
from loadtests.tools.commands import run
from loadtests.tools.golang import find_go
from loadtests.tools.saying import Say

SOURCES = Path(__file__).parent / "apps"
APP_IMAGE = "lab.local/apps:1"
PAUSE_IMAGE = "lab.local/pause:1"
_BUILD_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class AppImages:
    binary: Path
    """Also process 1 of a node, as `apps pause`."""
    archives: tuple[Path, ...]


async def app_images(cache: Cache, say: Say) -> AppImages:
    folder = cache.sources(f"apps-{_version_of_sources()}")
    binary, apps, pause = folder / "apps", folder / "apps.tar", folder / "pause.tar"
    async with cache.alone(folder.name, lambda: say("apps: another run builds them")):
        if not pause.exists():
            say("apps: building their image; usually 10 s")
            go = await find_go(cache, say)
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
