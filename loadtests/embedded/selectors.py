"""Label and field selectors: parsed once per request, then asked for every object."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from loadtests.embedded.api_errors import bad_request
from loadtests.embedded.objects import labels_of
from loadtests.embedded.resources import Json, Resource

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]
Predicate = Callable[[Json], bool]

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_SET = re.compile(rf"^({_NAME})\s+(in|notin)\s*\(([^()]*)\)$")
_COMPARE = re.compile(rf"^({_NAME})\s*(==|=|!=|>|<)\s*([A-Za-z0-9._-]*)$")
_EXISTS = re.compile(rf"^(!?)\s*({_NAME})$")


def parse_label_selector(text: str) -> Test:
    """A label selector in its query-string form: `a=b,c!=d,e in (f,g),h,!i`."""
    tests = [_label_test(part.strip(), text) for part in _split(text)]
    return lambda labels: all(test(labels) for test in tests)


def _split(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            yield text[start:position]
            start = position + 1
    if text[start:].strip():
        yield text[start:]


def _label_test(part: str, whole: str) -> Test:
    if match := _SET.match(part):
        key, operator, listed = match.groups()
        return _requirement(key, "In" if operator == "in" else "NotIn", [value.strip() for value in listed.split(",")])
    if match := _COMPARE.match(part):
        key, operator, value = match.groups()
        named = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
        return _requirement(key, named[operator], [value])
    if match := _EXISTS.match(part):
        negated, key = match.groups()
        return _requirement(key, "DoesNotExist" if negated else "Exists", [])
    raise bad_request(f'unable to parse requirement: found "{part}" in label selector "{whole}"')


def _requirement(key: str, operator: str, values: list[str]) -> Test:
    wanted = frozenset(values)
    tests: Mapping[str, Test] = {
        "In": lambda labels: labels.get(key) in wanted,
        "NotIn": lambda labels: key not in labels or labels[key] not in wanted,
        "Exists": lambda labels: key in labels,
        "DoesNotExist": lambda labels: key not in labels,
        "Gt": lambda labels: _ordered(labels.get(key), values) > 0,
        "Lt": lambda labels: _ordered(labels.get(key), values) < 0,
    }
    if operator not in tests:
        raise bad_request(f'"{operator}" is not a valid label selector operator')
    return tests[operator]


def _ordered(value: str | None, values: list[str]) -> int:
    try:
        left, right = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return 0
    return (left > right) - (left < right)


def selector_of(selector: Json | None) -> Test:
    """A LabelSelector object as a test. A missing or empty one selects nothing here: that is what owners and
    disruption budgets mean by it."""
    if not selector or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return lambda _: False
    tests = [_requirement(key, "In", [value]) for key, value in (selector.get("matchLabels") or {}).items()]
    tests += [
        _requirement(entry["key"], entry["operator"], list(entry.get("values") or ()))
        for entry in selector.get("matchExpressions") or ()
    ]
    return lambda labels: all(test(labels) for test in tests)


def parse_field_selector(text: str, resource: Resource) -> Predicate:
    """A field selector for this kind; a field it does not know is refused as the real server words it."""
    tests = [_field_test(part.strip(), text, resource) for part in text.split(",") if part.strip()]
    return lambda obj: all(test(obj) for test in tests)


def _field_test(part: str, whole: str, resource: Resource) -> Predicate:
    match = re.match(r"^([^!=]+)(==|!=|=)(.*)$", part)
    if match is None:
        raise bad_request(f"invalid selector: '{whole}'; can't understand '{part}'")
    name, operator, value = match.groups()
    wanted = operator != "!="
    if name == "metadata.name" or (name == "metadata.namespace" and resource.namespaced):
        short = name.removeprefix("metadata.")
        return lambda obj: (obj["metadata"].get(short, "") == value) is wanted
    read = resource.fields.get(name)
    if read is None:
        raise bad_request(_unsupported(resource, name))
    return lambda obj: (read(obj) == value) is wanted


def _unsupported(resource: Resource, name: str) -> str:
    if resource.fields:
        return f"field label not supported: {name}"
    return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def predicate(resource: Resource, label_selector: str, field_selector: str) -> Predicate | None:
    """Both selectors in one test; None when everything passes."""
    by_labels = parse_label_selector(label_selector) if label_selector.strip() else None
    by_fields = parse_field_selector(field_selector, resource) if field_selector.strip() else None
    if by_labels is None:
        return by_fields
    if by_fields is None:
        return lambda obj: by_labels(labels_of(obj))
    return lambda obj: by_labels(labels_of(obj)) and by_fields(obj)
