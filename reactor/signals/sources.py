"""Users' own metrics. Any package can add one through the entry-point group `rematch.sources`.

A source measures what pods use and nodes have of one thing, such as the memory of GPUs. It becomes an axis of the
problem, beside CPU and memory. Sources are not trusted: each is read in a thread, with a deadline, and what it says is
checked.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Protocol, cast

from reactor.errors import MetricsError
from reactor.signals.blocking_calls import BoundedThreads, Exhausted

GROUP = "rematch.sources"
TAKEN = frozenset({"cpu", "memory", "network", "disk", "pods"})
"""Names of axes that Rematch has itself."""
_LONGEST_NAME = 63
_CONCURRENT = 4
_SHOWN = 3
_NO_ABORT = lambda: None  # noqa: E731 - a thread that hangs cannot be ended; it is a daemon


@dataclass(frozen=True, slots=True)
class SourcePod:
    namespace: str
    name: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class SourceReading:
    """In any unit, the same for pods and nodes. What is not named is unknown, never 0."""

    pods: Mapping[str, float] = field(default_factory=dict)
    """By UID: what the pod uses."""
    nodes: Mapping[str, float] = field(default_factory=dict)
    """By name: what the node has in all."""


class Source(Protocol):
    """What a plug-in of the group offers: a class without arguments."""

    @property
    def name(self) -> str:
        """Of the axis: lower case letters, digits and `-`."""
        ...

    def read(self, pods: Sequence[SourcePod], nodes: Sequence[str]) -> SourceReading:
        """The running pods and the nodes of the cluster now. It may block; it is called in a thread."""
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """A checked reading and when it was taken."""

    at: float
    values: SourceReading


def known_sources() -> tuple[str, ...]:
    return tuple(sorted({entry.name for entry in entry_points(group=GROUP)}))


def load_source(name: str) -> Source:
    """Raises MetricsError for one that is not installed or cannot be used."""
    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        raise MetricsError(f"source {name}: not installed; known are {', '.join(known_sources()) or 'none'}")
    try:
        made = found.load()()
    except Exception as error:
        raise MetricsError(f"source {name}: {found.value} cannot be made: {type(error).__name__}: {error}") from error
    missing = [what for what in ("name", "read") if not hasattr(made, what)]
    if missing:
        raise MetricsError(f"source {name}: {found.value} lacks {', '.join(missing)}")
    if made.name != name:
        raise MetricsError(f"source {name}: {found.value} calls itself {made.name!r}")
    if problem := wrong_name(name):
        raise MetricsError(f"source {name}: {problem}")
    return cast(Source, made)


def wrong_name(name: str) -> str:
    """Why it cannot be the name of an axis; empty if it can."""
    if name in TAKEN:
        return f"the axis {name} is Rematch's own; choose another name"
    if (
        not name
        or len(name) > _LONGEST_NAME
        or not all(each.isdigit() or each.islower() or each == "-" for each in name)
    ):
        return "its name must be of lower case letters, digits and -, at most 63 of them"
    return ""


def checked_reading(
    answer: object, pods: Sequence[SourcePod], nodes: Sequence[str]
) -> tuple[SourceReading, tuple[str, ...]]:
    """What can be used of an answer, and what is wrong with the rest."""
    if not isinstance(answer, SourceReading):
        return SourceReading(), (f"answered {type(answer).__name__}, not a SourceReading",)
    problems: list[str] = []
    used = _checked(answer.pods, {pod.uid for pod in pods}, "pod", problems)
    capacity = _checked(answer.nodes, set(nodes), "node", problems)
    for node in [node for node, amount in capacity.items() if amount == 0]:
        del capacity[node]
    return SourceReading(used, capacity), tuple(problems)


def _checked(values: object, known: set[str], what: str, problems: list[str]) -> dict[str, float]:
    if not isinstance(values, Mapping):
        problems.append(f"its {what}s are {type(values).__name__}, not a mapping")
        return {}
    good = {
        key: float(value)
        for key, value in values.items()
        if key in known and isinstance(value, int | float) and math.isfinite(value) and value >= 0
    }
    bad = [key for key in values if key in known and key not in good]
    if bad:
        names = ", ".join(sorted(map(str, bad))[:_SHOWN])
        problems.append(f"{len(bad)} values of {what}s are no number of at least 0, such as that of {names}")
    return good


class SourceReader:
    """Reads the sources that the settings name. A failure of one is a problem of this round, and no more."""

    def __init__(self) -> None:
        self._threads = BoundedThreads(_CONCURRENT)
        self._made: dict[str, Source] = {}

    async def read(
        self, names: Sequence[str], pods: Sequence[SourcePod], nodes: Sequence[str], deadline: float
    ) -> tuple[dict[str, SourceReading], tuple[MetricsError, ...]]:
        """By name; without those that failed."""
        answers = await asyncio.gather(*(self._read(name, pods, nodes, deadline) for name in names))
        readings = {name: answer[0] for name, answer in zip(names, answers, strict=True) if answer[0] is not None}
        return readings, tuple(problem for _, problems in answers for problem in problems)

    async def _read(
        self, name: str, pods: Sequence[SourcePod], nodes: Sequence[str], deadline: float
    ) -> tuple[SourceReading | None, list[MetricsError]]:
        try:
            source = self._made.get(name) or self._made.setdefault(name, load_source(name))
            answer = await self._threads.run(lambda: source.read(pods, nodes), _NO_ABORT, deadline)
        except MetricsError as error:
            return None, [error]
        except TimeoutError:
            return None, [MetricsError(f"source {name}: no answer within {deadline:g} s")]
        except Exhausted:
            return None, [MetricsError(f"source {name}: not read, because earlier calls have not ended")]
        except Exception as error:  # noqa: BLE001 - a user's code may raise anything
            return None, [MetricsError(f"source {name}: {type(error).__name__}: {error}")]
        reading, problems = checked_reading(answer, pods, nodes)
        return reading, [MetricsError(f"source {name}: {problem}") for problem in problems]
