"""What the figures were made with."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version


def own_versions() -> Mapping[str, str]:
    return {
        "rematch": version("rematch"),
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.release()}",
    }
