"""Our exceptions. Exceptions of other libraries are mapped to these in the module that calls the library.

RematchError
|- SettingsError              the settings are wrong; every error with its path
|- InputError                 a file or argument of the user is wrong; one line that says where
|- ClusterError               the Kubernetes API
|  |- Unreachable             no usable response in time: connection, reset, 5xx, truncated body (retry)
|  |- Throttled               flow control (429 with Retry-After)
|  |- Expired                 the resourceVersion is too old (410): list again
|  |- NotFound                404
|  |- Conflict                409: a precondition or resourceVersion did not hold
|  |- Forbidden               401/403: a permission is missing; the message says which
|  |  `- NotLeader            not even sent: this process does not hold the Lease
|  `- Refused                 any other 4xx: a retry does not help
|- MetricsError               Prometheus or metrics.k8s.io gave no usable response
|- BrokerError                the MQTT broker is away, or refuses
`- PlannerError               a planner made no plan within its deadline
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class RematchError(Exception):
    """The root of all our exceptions."""


class FieldError(NamedTuple):
    """What is wrong with a setting and what to write instead. An error of the whole document has no path."""

    path: str
    message: str


def format_errors(problems: Iterable[tuple[str, str]]) -> str:
    """As one line."""
    return "; ".join(f"{path}: {message}" if path else message for path, message in problems)


class SettingsError(RematchError):
    """`source` is the file or ConfigMap."""

    def __init__(self, problems: Sequence[tuple[str, str]], source: str = "") -> None:
        self.problems = [FieldError(*problem) for problem in problems]
        self.source = source
        text = format_errors(problems)
        super().__init__(f"{source}: {text}" if source else text)


class InputError(RematchError):
    pass


class ClusterError(RematchError):
    def __init__(self, message: str, *, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class Unreachable(ClusterError):
    pass


class Throttled(ClusterError):
    def __init__(self, message: str, *, retry_after: float, status: int | None = 429) -> None:
        self.retry_after = retry_after
        super().__init__(message, status=status)


class Expired(ClusterError):
    pass


class NotFound(ClusterError):
    pass


class Conflict(ClusterError):
    pass


class Forbidden(ClusterError):
    pass


class NotLeader(Forbidden):
    pass


class Refused(ClusterError):
    pass


class MetricsError(RematchError):
    pass


class BrokerError(RematchError):
    pass


class PlannerError(RematchError):
    pass
