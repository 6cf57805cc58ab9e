"""Free ports on this machine."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

from reactor.errors import RematchError

_RANGE = range(20_000, 32_000)
"""Below what the kernel gives to clients: a port found free here is not taken by an outgoing connection."""
_TRIES = 200


def is_free(address: str, port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
        return True


def free_ports(address: str, count: int) -> list[int]:
    """Different ones: all are held until the last is found."""
    found: list[int] = []
    with ExitStack() as held:
        for port in random.sample(_RANGE, _TRIES):
            probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            try:
                probe.bind((address, port))
            except OSError:
                continue
            found.append(port)
            if len(found) == count:
                return found
    raise RematchError(f"no {count} free ports on {address}")


def free_port(preferred: int = 0) -> int:
    """On loopback: the preferred port if it is free, else any."""
    return preferred if preferred and is_free("127.0.0.1", preferred) else free_ports("127.0.0.1", 1)[0]
