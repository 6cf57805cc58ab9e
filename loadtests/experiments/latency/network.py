"""A network of the experiment's own, in which every address of a range is this machine's.

The API server refuses loopback addresses in EndpointSlices, so nodes and pods need others. In a network namespace of
their own they can be any, and no root is needed where users may have namespaces.
"""

from __future__ import annotations

import os
import subprocess
import sys

from loadtests.tools.processes import ENDS_WITH_US
from reactor.errors import InputError

RANGE = "10.64.0.0/10"
_INSIDE = "REMATCH_LATENCY_NETWORK"
_SCRIPT = f'ip link set lo up && ip route add local {RANGE} dev lo && exec "$@"'
_SECONDS = 20.0


def inside() -> bool:
    return os.environ.get(_INSIDE) == "yes"


def enter() -> None:
    """This process starts again inside. Does not return."""
    own = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--user", "--map-root-user"]
    _check(own)
    rematch = [sys.executable, "-c", "from reactor.cli.main import main; main()"]
    command = [*own, "sh", "-c", _SCRIPT, "sh", *rematch, *sys.argv[1:]]
    os.execvpe(command[0], command, {**os.environ, _INSIDE: "yes"})


def _check(own: list[str]) -> None:
    try:
        found = subprocess.run(
            [*ENDS_WITH_US, *own, "sh", "-c", _SCRIPT, "sh", "true"],
            check=False,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"a network of its own is not possible: {error}; install util-linux and iproute2") from error
    if found.returncode:
        raise InputError(
            f"a network of its own is not possible: {found.stderr.strip()}; run this as root, or allow user namespaces"
        )


def node_address(lab: int, rank: int) -> str:
    return f"10.64.{lab}.{rank}"


def pod_network(lab: int) -> str:
    return f"10.{65 + lab}.0.0/16"
