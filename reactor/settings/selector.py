"""Label selectors as kubectl's -l writes them: `app=web,tier in (a,b),!canary`, and whether labels meet them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from matching.problem import Requirement

_TOKEN = re.compile(r"\s*(?:(?P<symbol>==|!=|[=!(),<>])|(?P<word>[^\s=!(),<>]+))")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}


def parse_selector(text: str) -> tuple[Requirement, ...]:
    """Raises ValueError that names the place; empty text selects everything."""
    return _Parser(text).requirements() if text.strip() else ()


def matches(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    return all(_holds(requirement, labels.get(requirement.key)) for requirement in requirements)


def _holds(requirement: Requirement, value: str | None) -> bool:
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
        case unknown:
            raise ValueError(f"{unknown!r} is no operator of a label selector")


def _compares(requirement: Requirement, value: str | None) -> bool:
    if value is None or not re.fullmatch(r"[+-]?\d{1,19}", value):
        return False
    bound = int(requirement.values[0])
    return int(value) > bound if requirement.operator == "Gt" else int(value) < bound


class _Parser:
    """Reads one requirement after the other; `_next` is the first token that is not read yet, empty at the end."""

    def __init__(self, text: str) -> None:
        self._tokens = [found["symbol"] or found["word"] for found in _TOKEN.finditer(text)]
        self._place = 0

    def requirements(self) -> tuple[Requirement, ...]:
        found = [self._requirement()]
        while self._next:
            self._expect(",")
            found.append(self._requirement())
        return tuple(found)

    @property
    def _next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._next
        self._place += 1
        return token

    def _expect(self, token: str) -> None:
        if self._next != token:
            raise ValueError(f"expected {token!r} but found {self._found()}")
        self._place += 1

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
        if sign in ("<", ">") and not re.fullmatch(r"[+-]?\d{1,19}", values[0]):
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
        """An empty value is a value: `app=` selects what has the label with nothing in it."""
        if self._next in ("", ",", ")"):
            return ""
        value = self._take()
        if not _NAME.fullmatch(value):
            raise ValueError(f"{value!r} is no label value: at most 63 letters, digits, '-', '_' or '.'")
        return value
