"""Parser of label selectors as in kubectl's -l: `app=web,tier in (a,b),!canary`.

`matching.selectors.matches` evaluates them.
"""

from __future__ import annotations

import re

from matching.problem import Requirement
from matching.selectors import parse_integer

_TOKEN = re.compile(r"\s*(?:(?P<symbol>==|!=|[=!(),<>])|(?P<word>[^\s=!(),<>]+))")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}


def parse_selector(text: str) -> tuple[Requirement, ...]:
    """Raises ValueError that says what was expected. Empty text selects everything."""
    return _Parser(text).requirements() if text.strip() else ()


class _Parser:
    """Reads one requirement after the other; `_next` is the first unread token, empty at the end."""

    def __init__(self, text: str) -> None:
        self._tokens = [found["symbol"] or found["word"] for found in _TOKEN.finditer(text)]
        self._position = 0

    def requirements(self) -> tuple[Requirement, ...]:
        found = [self._requirement()]
        while self._next:
            self._expect(",")
            found.append(self._requirement())
        return tuple(found)

    @property
    def _next(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._next
        self._position += 1
        return token

    def _expect(self, token: str) -> None:
        if self._next != token:
            raise ValueError(f"expected {token!r} but found {self._found()}")
        self._position += 1

    def _found(self) -> str:
        return repr(self._next) if self._next else "the end"

    def _requirement(self) -> Requirement:
        if self._next == "!":
            self._take()
            return Requirement(self._key(), "DoesNotExist")
        key = self._key()
        if self._next in ("", ","):
            return Requirement(key, "Exists")
        sign = self._take()
        if sign not in _OPERATORS:
            raise ValueError(f"expected =, ==, !=, in, notin, < or > after {key!r} but found {sign!r}")
        values = self._values() if sign in ("in", "notin") else (self._value(),)
        if sign in ("<", ">") and parse_integer(values[0]) is None:
            raise ValueError(f"{key}{sign} needs a whole number, not {values[0]!r}")
        return Requirement(key, _OPERATORS[sign], values)

    def _key(self) -> str:
        if not self._next or not re.match(r"[^=!(),<>]", self._next):
            raise ValueError(f"expected a label key but found {self._found()}")
        key = self._take()
        prefix, slash, name = key.rpartition("/")
        if not _NAME.fullmatch(name) or (slash and (len(prefix) > 253 or not _PREFIX.fullmatch(prefix))):
            raise ValueError(
                f"{key!r} is no label key: write name or prefix/name, "
                "the name at most 63 letters, digits, '-', '_' or '.'"
            )
        return key

    def _values(self) -> tuple[str, ...]:
        self._expect("(")
        values = [self._value()]
        while self._next == ",":
            self._take()
            values.append(self._value())
        self._expect(")")
        return tuple(sorted(set(values)))

    def _value(self) -> str:
        """A value may be empty: `app=` selects objects whose label has an empty value."""
        if self._next in ("", ",", ")"):
            return ""
        value = self._take()
        if not _NAME.fullmatch(value):
            raise ValueError(f"{value!r} is no label value: at most 63 letters, digits, '-', '_' or '.'")
        return value
