"""Small stand-ins that several test files of this folder use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from reactor.cluster.decoding.decoder import MalformedObject
from reactor.cluster.kinds import Kind
from reactor.errors import ClusterError


@dataclass
class FakeClock:
    """Sleeping takes no time, but the time goes on."""

    time: float = 1000.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


@dataclass
class Reports:
    """Collects what a watcher reports."""

    objects: list[MalformedObject] = field(default_factory=list)
    troubles: list[tuple[ClusterError, float]] = field(default_factory=list)

    def malformed(self, malformed: MalformedObject) -> None:
        self.objects.append(malformed)

    def trouble(self, kind: Kind, error: ClusterError, delay: float) -> None:
        self.troubles.append((error, delay))


def kubeconfig(folder: Path, url: str, user: str = "{}") -> str:
    path = folder / "kubeconfig"
    path.write_text(
        f"""
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: here, cluster: {{server: "{url}"}}}}]
users: [{{name: me, user: {user}}}]
contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
"""
    )
    return str(path)


async def eventually(holds: Callable[[], bool], seconds: float = 5.0) -> None:
    """For what another task brings about through a real socket."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.002)
