"""Instant vector selectors: the part of PromQL that the lab's Prometheus answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_SELECTOR = re.compile(r"\s*([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{(.*)\}\s*)?", re.DOTALL)
_MATCHER = re.compile(r"""\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*""")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
SUPPORTED = 'only instant vector selectors are supported here, such as name or name{label="value", other=~"a|b"}'


class QueryError(ValueError):
    """The message is part of the HTTP response."""


@dataclass(frozen=True, slots=True)
class Matcher:
    label: str
    operator: str
    value: str

    def matches(self, labels: Mapping[str, str]) -> bool:
        """A missing label reads as the empty string; patterns are anchored at both ends."""
        found = labels.get(self.label, "")
        hit = found == self.value if "~" not in self.operator else re.fullmatch(self.value, found) is not None
        return hit is not self.operator.startswith("!")


@dataclass(frozen=True, slots=True)
class Selector:
    name: str
    matchers: tuple[Matcher, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(matcher.matches(labels) for matcher in self.matchers)


def parse_selector(query: str) -> Selector:
    if not query.strip():
        raise QueryError(f"the query is empty; {SUPPORTED}")
    found = _SELECTOR.fullmatch(query)
    if found is None:
        raise QueryError(f"cannot answer {query.strip()!r}: {SUPPORTED}")
    return Selector(found[1], tuple(_matchers(query, found[2] or "")))


def _matchers(query: str, text: str) -> list[Matcher]:
    matchers: list[Matcher] = []
    while text.strip():
        found = _MATCHER.match(text)
        rest = text[found.end() :] if found else ""
        if found is None or (rest and not rest.startswith(",")):
            raise QueryError(f"cannot answer {query.strip()!r}: {SUPPORTED}")
        matchers.append(_matcher(found[1], found[2], found[3]))
        text = rest[1:]
    return matchers


def _matcher(label: str, operator: str, quoted: str) -> Matcher:
    value = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), quoted[1:-1])
    if "~" in operator:
        try:
            re.compile(value)
        except re.error as error:
            raise QueryError(f"label {label}: {value!r} is not a regular expression: {error}") from error
    return Matcher(label, operator, value)
