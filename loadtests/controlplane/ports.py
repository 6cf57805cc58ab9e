"""Free ports on one address."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

from reactor.errors import RematchError

_RANGE = range(20_000, 32_000)
"""Below what the kernel gives to clients: a port found free here is not taken by an outgoing connection."""
_TRIES = 200


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
