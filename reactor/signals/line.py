"""HTTP connections of a blocking call that can be cut from outside: a timeout per read never ends a slow trickle."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.retry import Retry


class Line:
    """The sockets of one call, to be shut down when it is given up."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._is_cut = False

    def hold(self, opened: socket.socket | None) -> None:
        if opened is not None:
            self._sockets.append(opened)
            if self._is_cut:
                self.cut()

    def cut(self) -> None:
        self._is_cut = True
        for opened in self._sockets:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)


class LineAdapter(HTTPAdapter):
    """Without repeats; every connection it opens is held by the line."""

    def __init__(self, line: Line) -> None:
        self._line = line
        super().__init__(max_retries=Retry(total=0, read=False))

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, **kwargs)
        line = self._line

        class Plain(HTTPConnection):
            def connect(self) -> None:
                super().connect()
                line.hold(self.sock)

        class Secure(HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                line.hold(self.sock)

        plain = type("PlainPool", (HTTPConnectionPool,), {"ConnectionCls": Plain})
        secure = type("SecurePool", (HTTPSConnectionPool,), {"ConnectionCls": Secure})
        self.poolmanager.pool_classes_by_scheme = {"http": plain, "https": secure}
