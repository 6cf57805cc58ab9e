"""Label and field selectors: parsed once per request, then evaluated for every object."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from loadtests.embedded.api_errors import bad_request
from loadtests.embedded.objects import labels_of
from loadtests.embedded.resources import Json, Resource
from matching.problem import Requirement
from matching.selectors import matches
from reactor.settings.selector import parse_selector

Labels = Mapping[str, str]
LabelTest = Callable[[Labels], bool]
Predicate = Callable[[Json], bool]
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def parse_label_selector(text: str) -> LabelTest:
    """A label selector in its query-string form: `a=b,c!=d,e in (f,g),h,!i`."""
    try:
        requirements = parse_selector(text)
    except ValueError as error:
        raise bad_request(f'unable to parse requirement: {error} in label selector "{text}"') from error
    return lambda labels: matches(requirements, labels)


def selector_of(selector: Json | None) -> LabelTest:
    """A LabelSelector object as a test. A missing or empty one selects nothing: owners and PDBs mean it so."""
    if not selector or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return lambda _: False
    expressions = selector.get("matchExpressions") or ()
    for entry in expressions:
        if entry["operator"] not in _OPERATORS:
            raise bad_request(f'"{entry["operator"]}" is not a valid label selector operator')
    labels = (Requirement(key, "In", (value,)) for key, value in (selector.get("matchLabels") or {}).items())
    requirements = (*labels, *requirements_of(expressions))
    return lambda labels: matches(requirements, labels)


def requirements_of(expressions: Iterable[Json]) -> tuple[Requirement, ...]:
    """Of a LabelSelector's or a node selector term's expressions."""
    return tuple(
        Requirement(entry["key"], entry["operator"], tuple(entry.get("values") or ())) for entry in expressions
    )


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
