"""One component as a process that cannot outlive this one."""

from __future__ import annotations

import subprocess
from pathlib import Path

from loadtests.controlplane.leftovers import Identity, identity_of
from loadtests.tools.child_processes import ENDS_WITH_US, without_proxies
from reactor.errors import ClusterError

_TAIL = 15
_KILL_SECONDS = 10.0


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
                [*ENDS_WITH_US, *self._command],
                env=without_proxies(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            try:
                self._process.wait(_KILL_SECONDS)
            except subprocess.TimeoutExpired as error:
                raise ClusterError(f"{self.name} was killed and did not end within {_KILL_SECONDS:g} s") from error
            self._process = None

    def check(self) -> None:
        """Raises with the end of its log when it has ended."""
        if self._process is None or self._process.poll() is not None:
            raise ClusterError(f"{self.name} ended: {self.last_words()}")

    def last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join([f"(the end of {self._log})", *lines[-_TAIL:]])
