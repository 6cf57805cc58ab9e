"""The query parameters of the API. An error names the parameter."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from multidict import MultiMapping
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

LONGEST_NAME = 253
"""No name in Kubernetes is longer."""
LARGEST_NUMBER = 2**53 - 1
"""The largest whole number that all JSON readers read exactly."""
LONGEST_NUMBER = len(str(LARGEST_NUMBER))

Q = TypeVar("Q", bound="NoQuery")


class ParameterError(ValueError):
    def __init__(self, parameter: str, message: str) -> None:
        self.parameter = parameter
        super().__init__(message)


def _digits_only(value: object) -> object:
    """`int()` also reads signs, spaces, underscores and the digits of other scripts."""
    if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) <= LONGEST_NUMBER):
        raise ValueError("must be a whole number in decimal digits")
    return value


Whole = Annotated[int, BeforeValidator(_digits_only)]
Name = Annotated[str, StringConstraints(max_length=LONGEST_NAME)]
Page = Annotated[Whole, Field(ge=1, le=100_000)]
"""Pages are counted from 1."""


class NoQuery(BaseModel):
    """For paths without parameters."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class OverviewQuery(NoQuery):
    """How much of the overview to send; of the nodes in `expand` all pods, up to a bound."""

    nodes: Annotated[Whole, Field(ge=1, le=5000)] = 100
    """Nodes per page."""
    page: Page = 1
    """Which page, from 1."""
    chips: Annotated[Whole, Field(ge=1, le=1000)] | None = None
    """Pods per node. By default fewer where not all nodes are shown."""
    search: Name = ""
    """A part of the name of a node, or of the namespace and name of a pod."""
    expand: Annotated[tuple[Name, ...], Field(max_length=20)] = ()
    """Names of nodes of which all pods are sent."""


class PodsQuery(NoQuery):
    limit: Annotated[Whole, Field(ge=1, le=500)] = 50
    """Pods per page."""
    page: Page = 1
    """Which page, from 1."""
    search: Name = ""
    """A part of the namespace and name."""
    node: Name = ""
    """Only pods of this node."""


class TopQuery(PodsQuery):
    namespace: Name = ""
    """Only pods of this namespace."""
    sort: Literal["cpu", "memory", "happiness"] = "cpu"
    """By usage, the highest first; by happiness, the lowest first."""


class DecisionsQuery(NoQuery):
    limit: Annotated[Whole, Field(ge=1, le=200)] = 50
    before: Annotated[Whole, Field(ge=0, le=LARGEST_NUMBER)] | None = None
    """Only entries with a lower id: the next page after the last id of this one."""
    waits: Literal["true", "false"] = "true"
    """`false` leaves out decisions to wait."""


class FindQuery(NoQuery):
    name: Annotated[Name, Field(min_length=1)]
    """The name of a pod, the beginning of one, or the name of a workload."""
    namespace: Name = ""
    """Without one: all namespaces."""
    kind: Literal["", "Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"] = ""
    """Of the object that is named; without one: any."""
    limit: Annotated[Whole, Field(ge=1, le=500)] = 50


class UsageQuery(NoQuery):
    name: Annotated[Name, Field(min_length=1)]
    """A pod (`NAME` or `NAMESPACE/NAME`), a workload (`deploy/NAME`, `sts/NAME`), or a node (`node/NAME`)."""
    namespace: Name = ""
    """Without one: default first, then all others."""
    hours: Annotated[Whole, Field(ge=1, le=90 * 24)] = 24
    """How far back."""


def read_query(kind: type[Q], query: MultiMapping[str]) -> Q:
    """Raise ParameterError for a parameter that is unknown, repeated or wrong."""
    values: dict[str, object] = {}
    for name in query:
        given = query.getall(name)
        if name not in kind.model_fields:
            known = ", ".join(sorted(kind.model_fields)) or "none"
            raise ParameterError(name[:LONGEST_NAME], f"unknown parameter; known here: {known}")
        repeatable = isinstance(kind.model_fields[name].default, tuple)
        if len(given) > 1 and not repeatable:
            raise ParameterError(name, "given more than once")
        values[name] = given if repeatable else given[0]
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ParameterError(str(first["loc"][0]), first["msg"]) from error
