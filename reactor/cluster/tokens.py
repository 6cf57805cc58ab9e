"""A bearer token in a file that is replaced from time to time (projected service account tokens)."""

from __future__ import annotations

from pathlib import Path

from reactor.errors import InputError

_Stamp = tuple[int, int, int]


class TokenFile:
    """Read again whenever the file changes: one stat per request costs microseconds, a stale token costs a 401."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: _Stamp | None = None
        self._token = ""

    def read(self) -> str:
        """The current token. A file that is gone or empty for a moment (it is being replaced) leaves the last one."""
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

    def forget(self) -> None:
        """Read the file next time whatever its stamp says."""
        self._stamp = None
