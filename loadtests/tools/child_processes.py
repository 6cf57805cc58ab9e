"""What the processes that the lab starts have in common."""

from __future__ import annotations

import os

ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""Before a command: the kernel kills it when the thread that started it is gone, however that came."""


def without_proxies() -> dict[str, str]:
    """The environment of one that talks within the machine only."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
