"""Loopback addresses for pods: one each, not given out again until clients have had time to forget them."""

from __future__ import annotations

import ipaddress
import random
from collections import deque

from loadtests.tools.ports import is_free
from reactor.clock import Clock
from reactor.errors import RematchError

_TRIES = 256
_PORTS = 100
_RANGE = ipaddress.IPv4Network("127.16.0.0/12")


class NoAddressError(RematchError):
    """Nothing free at this port."""


class AddressPool:
    """Shared by the kubelets of one lab. It starts at a random place, since several labs may run on one machine."""

    def __init__(self, clock: Clock, quarantine: float = 60.0, network: ipaddress.IPv4Network = _RANGE) -> None:
        self._clock = clock
        self._quarantine = quarantine
        self._network = network
        self._next = random.randrange(network.num_addresses)
        self._used: set[str] = set()
        self._resting: deque[tuple[float, str]] = deque()

    def take(self, port: int) -> str:
        """An address whose port is free."""
        self._wake()
        for _ in range(min(self._network.num_addresses, len(self._used) + _TRIES)):
            address = str(self._network[self._next])
            self._next = (self._next + 1) % self._network.num_addresses
            if address.endswith((".0", ".255")) or address in self._used or not is_free(address, port):
                continue
            self._used.add(address)
            return address
        raise NoAddressError(
            f"no address of {self._network} is free at port {port}; if another program listens on all addresses at"
            " this port, stop it or run the pods on another port"
        )

    def give_back(self, address: str) -> None:
        self._resting.append((self._clock.monotonic() + self._quarantine, address))

    def _wake(self) -> None:
        now = self._clock.monotonic()
        while self._resting and self._resting[0][0] <= now:
            self._used.discard(self._resting.popleft()[1])


def port_for_pods(preferred: int = 8080) -> int:
    """The first port from `preferred` on that no other program has taken on all addresses."""
    for port in range(preferred, preferred + _PORTS):
        if any(is_free(str(_RANGE[random.randrange(_RANGE.num_addresses)]), port) for _ in range(3)):
            return port
    raise NoAddressError(f"ports {preferred} to {preferred + _PORTS - 1} are all taken on this machine")
