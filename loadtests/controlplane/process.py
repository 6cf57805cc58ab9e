"""One component as a process that cannot outlive this one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from loadtests.controlplane.leftovers import Identity, identity_of
from reactor.errors import ClusterError

_TAIL = 15
_KILL_SECONDS = 10.0
_ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""The kernel kills it when this process is gone, however that came."""


class ComponentProcess:
    """Killed, not asked to end: an API server waits a minute for its watches, and nothing of it is kept."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def identity(self) -> Identity | None:
        return identity_of(self._process.pid) if self._process is not None else None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_ENDS_WITH_US, *self._command],
                env=_without_proxies(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(_KILL_SECONDS)
            self._process = None

    def check(self) -> None:
        """Raises with the end of its log when it has ended."""
        if self._process is None or self._process.poll() is not None:
            raise ClusterError(f"{self.name} ended: {self.last_words()}")

    def last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join([f"(the end of {self._log})", *lines[-_TAIL:]])


def _without_proxies() -> dict[str, str]:
    """Everything here talks within the machine."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
