"""Query parameters, judged one by one; a wrong one is answered with its name and what would be right."""

from __future__ import annotations

from collections.abc import Collection

from multidict import MultiMapping

LONGEST_TEXT = 253
"""No name in Kubernetes is longer."""
LARGEST = 2**53 - 1
"""The largest whole number that JSON readers agree on."""


class ParameterError(ValueError):
    def __init__(self, parameter: str, message: str) -> None:
        self.parameter = parameter
        super().__init__(message)


class Parameters:
    """A request's query; every name must be one of `known`, and only those in `repeatable` may come twice."""

    def __init__(self, query: MultiMapping[str], known: Collection[str], repeatable: Collection[str] = ()) -> None:
        for name in query:
            if name not in known:
                offered = ", ".join(sorted(known)) or "none"
                raise ParameterError(name[:LONGEST_TEXT], f"unknown parameter; this address takes: {offered}")
            if name not in repeatable and len(query.getall(name)) > 1:
                raise ParameterError(name, "given more than once")
        self._query = query

    def whole(self, name: str, default: int, lowest: int, highest: int) -> int:
        value = self._whole(name, lowest, highest)
        return default if value is None else value

    def optional_whole(self, name: str) -> int | None:
        return self._whole(name, 0, LARGEST)

    def flag(self, name: str, default: bool) -> bool:
        text = self._query.get(name)
        if text is None:
            return default
        if text not in ("true", "false"):
            raise ParameterError(name, "must be true or false")
        return text == "true"

    def text(self, name: str) -> str:
        return self._bounded(name, self._query.get(name, ""))

    def texts(self, name: str, most: int) -> frozenset[str]:
        values = self._query.getall(name, [])
        if len(values) > most:
            raise ParameterError(name, f"given {len(values)} times; at most {most} are taken")
        return frozenset(self._bounded(name, value) for value in values)

    def _whole(self, name: str, lowest: int, highest: int) -> int | None:
        text = self._query.get(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 16 and lowest <= int(text) <= highest):
            raise ParameterError(name, f"must be a whole number from {lowest} to {highest}")
        return int(text)

    def _bounded(self, name: str, value: str) -> str:
        if len(value) > LONGEST_TEXT:
            raise ParameterError(name, f"must be at most {LONGEST_TEXT} characters long")
        return value
