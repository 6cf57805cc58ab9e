"""A PostgreSQL server of this run alone: own data folder, a free port of loopback, an unprivileged user."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from loadtests.tools.catalogue import ToolMissing
from loadtests.tools.ports import free_port
from loadtests.tools.processes import ends_with_us
from reactor.errors import RematchError

USER, PASSWORD, DATABASE = "rematch", "only for this run", "rematch"
_PROGRAMS = "/usr/lib/postgresql/*/bin/postgres"
_NOBODY = ("--reuid=nobody", "--regid=nogroup", "--clear-groups")
_SECONDS = 60.0
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "max_connections": "40",
    "shared_buffers": "32MB",
    "logging_collector": "off",
}


def find_server() -> Path:
    """The newest one that is installed."""
    found = sorted(Path("/").glob(_PROGRAMS.removeprefix("/")), key=lambda path: float(path.parts[4]))
    if not found:
        raise ToolMissing("PostgreSQL's server is not here: apt-get install --no-install-recommends postgresql")
    return found[-1]


class PostgresqlServer:
    def __init__(self, folder: Path) -> None:
        self._program = find_server()
        self._data = folder / "data"
        self._log = folder / "server.log"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        password = folder / "password"
        password.write_text(PASSWORD)
        _give_away(folder, password)
        arguments = ["--username", USER, "--pwfile", str(password), "--auth", "scram-sha-256", "--no-sync"]
        initdb = [str(self._program.with_name("initdb")), "-D", str(self._data), "--encoding=UTF8", "--locale=C.UTF-8"]
        _run([*initdb, *arguments])

    def url(self, database: str = DATABASE, password: str = PASSWORD) -> str:
        return f"postgresql://{USER}:{password.replace(' ', '%20')}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Until it answers."""
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_unprivileged(), str(self._program), "-D", str(self._data), "-p", str(self.port), *settings],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        deadline = time.monotonic() + _SECONDS
        ready = [str(self._program.with_name("pg_isready")), "-h", "127.0.0.1", "-p", str(self.port), "-t", "5"]
        while subprocess.run(ready, check=False, capture_output=True, timeout=_SECONDS).returncode:
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RematchError(f"PostgreSQL does not start: {self._log.read_text()[-1000:]}")
            time.sleep(0.05)

    def create(self, database: str = DATABASE) -> None:
        command = [str(self._program.with_name("createdb")), "-h", "127.0.0.1", "-p", str(self.port), "-U", USER]
        _run([*command, database], {"PGPASSWORD": PASSWORD})

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends the connections and the server; SIGQUIT does so without a checkpoint, as a crash."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_SECONDS)

    def freeze(self) -> None:
        """Connections stay open, and nothing answers."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, how: signal.Signals) -> None:
        """The server's children are in groups of their own."""
        if self._process is None:
            return
        found = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for pid in (self._process.pid, *map(int, found)):
            os.kill(pid, how)


@contextmanager
def postgresql_server() -> Iterator[PostgresqlServer]:
    """Started, with an empty database; ended and removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="rematch-postgresql-"))
    try:
        server = PostgresqlServer(folder)
        server.start()
        try:
            server.create()
            yield server
        finally:
            server.stop(signal.SIGQUIT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _give_away(*paths: Path) -> None:
    if os.geteuid() == 0:
        for path in paths:
            shutil.chown(path, "nobody", "nogroup")


def _unprivileged() -> Sequence[str]:
    """PostgreSQL does not start as root. The kernel forgets the signal at our death when the user changes, so that
    comes first."""
    return (*(("setpriv", *_NOBODY) if os.geteuid() == 0 else ()), *ends_with_us())


def _run(command: Sequence[str], added: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        [*_unprivileged(), *command],
        env={**os.environ, "LC_ALL": "C.UTF-8", **(added or {})},
        check=False,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        cwd="/",
    )
    if done.returncode:
        raise RematchError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")
