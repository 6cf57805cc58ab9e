"""Credentials for the Authorization header, and how they are renewed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from reactor.errors import ClusterError, Forbidden, InputError

_Stamp = tuple[int, int, int]


class Credential(Protocol):
    async def header(self) -> str | None: ...

    async def renew(self) -> bool:
        """Called after a 401. True when the next request may be accepted."""
        ...


class FixedToken:
    """A token from the kubeconfig, or none (client certificates)."""

    def __init__(self, header: str | None) -> None:
        self._header = header

    async def header(self) -> str | None:
        return self._header

    async def renew(self) -> bool:
        return False


class FileToken:
    """A bearer token in a file that is replaced from time to time (projected service account tokens).

    The file is read again when it changes: one stat per request costs microseconds, a stale token costs a 401.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: _Stamp | None = None
        self._token = ""
        self._read()

    async def header(self) -> str | None:
        return f"Bearer {self._read()}"

    async def renew(self) -> bool:
        before, self._stamp = self._read(), None
        return self._read() != before

    def _read(self) -> str:
        """The current token. While the file is missing or empty (it is being replaced) the last token is used."""
        try:
            found = self._path.stat()
            stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
            if stamp != self._stamp:
                self._token = self._path.read_text().strip() or self._token
                self._stamp = stamp
        except (OSError, UnicodeDecodeError) as error:
            if not self._token:
                raise InputError(f"{self._path}: the token cannot be read: {error}") from error
        if not self._token:
            raise InputError(f"{self._path}: the token file is empty; it must hold the service account's token")
        return self._token


class Plugin(Protocol):
    """The client library's kubeconfig loader, for users with an exec plugin."""

    async def load_from_exec_plugin(self) -> bool | None: ...


class PluginToken:
    """Runs the exec plugin again when its token has expired or was refused, once for all waiting requests.

    `token` returns the plugin's last token, `expire` makes the loader run the plugin again.
    """

    DEADLINE = 60.0

    def __init__(self, plugin: Plugin, token: Callable[[], str | None], expire: Callable[[], None]) -> None:
        self._plugin = plugin
        self._token = token
        self._expire = expire
        self._lock = asyncio.Lock()

    async def header(self) -> str | None:
        async with self._lock:
            if hasattr(self._plugin, "exec_plugin_expiry"):
                await self._run()
            return self._token()

    async def renew(self) -> bool:
        async with self._lock:
            self._expire()
            await self._run()
            return True

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(self.DEADLINE):
                succeeded = await self._plugin.load_from_exec_plugin()
        except TimeoutError as error:
            raise ClusterError(f"the kubeconfig's exec plugin did not answer within {self.DEADLINE:g} s") from error
        if not succeeded:
            raise Forbidden("the kubeconfig's exec plugin failed; run its command by hand to see why")
