"""The fingerprint of a result: a hash that does not depend on wording.

Of a sentence only its numbers and the pods and nodes in it count. Codes (of reasons, causes, scopes) count as they are,
and floats with 9 decimals. The order of a list counts.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from loadtests.same_plans.draw import Json

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_PROTECTED = "protected"


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    exact: Json = field(default_factory=dict)
    """Counts as it is."""

    @classmethod
    def with_code(cls, text: str) -> Sentence:
        """`code: text` counts with its code. After `protected` there is a second code: the protection."""
        parts = text.split(": ")
        codes = parts[: 2 if parts[0] == _PROTECTED else 1] if len(parts) > 1 else []
        return cls(text, {"fixed": bool(text), "codes": codes})


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that one version of the project returned for a case, by part. It may contain sentences."""

    names: tuple[str, ...]
    """Pods and nodes that a sentence can name."""
    parts: Json

    def without_words(self) -> Json:
        longest_first = sorted(set(self.names), key=lambda name: (-len(name), name))
        names = "|".join(re.escape(name) for name in longest_first)
        found: Json = _without_words(self.parts, re.compile(rf"(?<![\w/.-])(?:{names})(?![\w/-])"))
        return found


@dataclass(frozen=True, slots=True)
class Entry:
    """The fingerprints of one case. Each part has its own, to show where a difference is."""

    id: str
    kind: str
    sha256: str
    parts: Mapping[str, str]

    @classmethod
    def of(cls, case: str, kind: str, found: Json) -> Entry:
        return cls(case, kind, _digest(found), {name: _digest(part)[:12] for name, part in found.items()})

    def to_json(self) -> Json:
        return {"kind": self.kind, "id": self.id, "sha256": self.sha256, "parts": dict(self.parts)}


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(value: object) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def _without_words(value: object, names: re.Pattern[str]) -> Any:
    if isinstance(value, Sentence):
        return {**_without_words(value.exact, names), **_numbers_and_names(value.text, names)}
    if isinstance(value, Mapping):
        return {str(key): _without_words(each, names) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_without_words(each, names) for each in value]
    return _scalar(value)


def _numbers_and_names(text: str, names: re.Pattern[str]) -> Json:
    """The digits of a name are not a number."""
    numbers = [_scalar(float(number)) for number in _NUMBER.findall(names.sub(" ", text))]
    return {"names": names.findall(text), "numbers": numbers}


def _scalar(value: object) -> object:
    """Adding 0.0 turns -0.0 into 0.0. JSON has no infinity."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return round(value, 9) + 0.0 if math.isfinite(value) else str(value)
    return value
