"""Programs that the distribution packages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from loadtests.tools.commands import CommandFailed, run
from loadtests.tools.errors import ToolMissing
from loadtests.tools.saying import Say

_SECONDS = 900.0
_QUIET = {"DEBIAN_FRONTEND": "noninteractive"}


async def install(packages: Sequence[str], say: Say) -> None:
    """As root on a Debian, where nothing is removed for it; anywhere else one line says what is missing."""
    wanted = " ".join(packages)
    advice = f"apt-get install --no-install-recommends {wanted}"
    if shutil.which("apt-get") is None:
        raise ToolMissing(f"install {wanted} with this system's package manager")
    if os.geteuid() != 0:
        raise ToolMissing(f"this needs root: {advice}")
    say(f"installing {wanted} (about a minute)")
    try:
        await run(["apt-get", "update", "-qq"], deadline=_SECONDS, env=_QUIET)
        command = ["apt-get", "install", "-y", "-qq", "--no-remove", "--no-install-recommends", *packages]
        await run(command, deadline=_SECONDS, env=_QUIET)
    except CommandFailed as error:
        raise ToolMissing(f"{advice}: {error}") from error
