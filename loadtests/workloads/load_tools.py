"""The input and the result of a load tool, the same for Vegeta and k6."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol
from urllib.parse import urlsplit

from loadtests.workloads.samples import RequestSample
from loadtests.workloads.targets import ForeignAddressError
from reactor.errors import RematchError

SPARE_SECONDS = 30.0
"""Beyond the load and its timeout; a tool that needs longer is stopped."""


class LoadToolError(RematchError):
    """The tool did not do what it was asked for, or gave back something else than its results."""


@dataclass(frozen=True, slots=True)
class Load:
    """`rate` requests per second to each app, all apps at once."""

    urls: Mapping[str, str]
    """By app."""
    rate: float
    seconds: float
    timeout: float
    network: str
    """The range that the run itself made; requests go nowhere else."""
    keep_alive: bool = False
    """Whether connections are used again. Without, every request goes where the routes of the moment lead."""

    def __post_init__(self) -> None:
        _check_addresses(self.urls, self.network)

    @property
    def requests(self) -> float:
        return self.rate * len(self.urls) * self.seconds

    def unsent(self, sent: int, sequences: int) -> float:
        """As a share; each of the tool's sequences of evenly spaced requests may end one short.

        A tool that sent next to nothing, or too much, did something else than it was asked for.
        """
        if not 0.5 * self.requests - 1 <= sent <= 1.1 * self.requests + len(self.urls):
            raise LoadToolError(f"{sent} requests were sent instead of {self.requests:.0f}")
        return max(0.0, 1 - (sent + sequences) / self.requests)

    @property
    def deadline(self) -> float:
        return self.seconds + self.timeout + SPARE_SECONDS


@dataclass(frozen=True, slots=True)
class ClosedLoad:
    """`users` requests at a time: each is followed by the next at once, to the apps in turn."""

    urls: Mapping[str, str]
    users: int
    seconds: float
    timeout: float
    network: str

    def __post_init__(self) -> None:
        _check_addresses(self.urls, self.network)

    @property
    def deadline(self) -> float:
        return self.seconds + self.timeout + SPARE_SECONDS


@dataclass(frozen=True, slots=True)
class FallingLoad:
    """Begins with `top` requests per second to each app, all apps at once, and falls evenly to nothing."""

    urls: Mapping[str, str]
    """By app."""
    top: float
    seconds: float
    timeout: float
    network: str
    """As of `Load`."""

    def __post_init__(self) -> None:
        _check_addresses(self.urls, self.network)

    @property
    def requests(self) -> float:
        return self.top / 2 * len(self.urls) * self.seconds

    @property
    def deadline(self) -> float:
        return self.seconds + self.timeout + SPARE_SECONDS


def _check_addresses(urls: Mapping[str, str], network: str) -> None:
    allowed = ipaddress.ip_network(network)
    for url in urls.values():
        host = urlsplit(url).hostname or ""
        if ipaddress.ip_address(host) not in allowed:
            raise ForeignAddressError(f"refusing to send load to {host}: only to {network}")


@dataclass(frozen=True, slots=True)
class LoadResult:
    samples: Sequence[RequestSample]
    """Their starts count from the first request."""
    began: float
    """When that was sent, in seconds since the epoch: tools take a while to start."""
    late_ms: float
    """How much later than due a request was sent, on average: the tool's own want of CPU."""
    unsent: float
    """Share of the requests that the tool did not get round to send."""


class LoadTool(Protocol):
    @property
    def name(self) -> str: ...

    async def attack(self, load: Load) -> LoadResult:
        """Cancelling it ends the tool."""
        ...


def lateness_ms(sequences: Collection[Sequence[float]], gap: float) -> float:
    """Mean over all requests; in each sequence of starts they are due at even distances from the very first one."""
    late = [start - number * gap for starts in sequences for number, start in enumerate(starts)]
    return max(0.0, fmean(late)) * 1000
