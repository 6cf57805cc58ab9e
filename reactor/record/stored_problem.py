"""The problem of a plan with everything that is needed to make the plan again, as one document.

`rematch history --problem` writes the document to a file, and `rematch plan -f` reads it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import msgspec
from msgspec import Raw, Struct

from matching.plan import Plan
from matching.problem import Problem, ProblemError
from matching.serialization import problem_from_json, problem_parts
from reactor.settings.model import Planner
from reactor.settings.planner import make_planner
from storage.rows import ProblemRow

KIND = "RematchStoredProblem"
VERSION = 1
LARGEST = 4 * 2**20
"""Bytes of a compressed document. A larger one is not stored."""
MOST_PODS = 50_000
"""A problem with more pods is not even encoded: it would be too large, and take seconds of CPU."""

_OUR_KIND = re.compile(rb'\s*\{\s*"kind"\s*:\s*"Rematch(Stored)?Problem"')


class StoredProblem(Struct, frozen=True):
    problem: Raw
    planner: str
    parameters: dict[str, Any]
    seed: int | None
    """Of the planner's random numbers, if it uses any."""
    fallbacks: tuple[str, ...]
    """What the planner noted: for example which of its attempts it dropped."""
    rematch: str
    """The version of Rematch that made the plan."""
    kind: str = KIND
    version: int = VERSION

    def decode(self) -> Problem:
        return problem_from_json(bytes(self.problem))


def problem_row(plan_id: str, problem: Problem, plan: Plan, planner: Planner) -> ProblemRow:
    """Takes 0.3 s of CPU for 10,000 pods: where something else may be due, use `problem_row_in_parts`."""
    *_, row = problem_row_in_parts(plan_id, problem, plan, planner)
    assert row is not None
    return row


def problem_row_in_parts(plan_id: str, problem: Problem, plan: Plan, planner: Planner) -> Iterator[ProblemRow | None]:
    """None after each part of the work, the row at the end. What cannot be stored has a note that says why."""
    if len(problem.pods) > MOST_PODS:
        yield ProblemRow(plan_id, None, f"not stored: {len(problem.pods)} pods are more than {MOST_PODS}")
        return
    compressor, document = zlib.compressobj(level=1), bytearray()
    try:
        for part in _parts(problem, plan, planner):
            document += compressor.compress(part)
            yield None
    except ProblemError as error:
        yield ProblemRow(plan_id, None, f"not stored: {error}")
        return
    document += compressor.flush()
    if len(document) <= LARGEST:
        yield ProblemRow(plan_id, bytes(document))
        return
    size, largest = len(document) / 2**20, LARGEST / 2**20
    yield ProblemRow(plan_id, None, f"not stored: {size:.1f} MiB compressed are more than {largest:g} MiB")


def _parts(problem: Problem, plan: Plan, planner: Planner) -> Iterator[bytes]:
    """The JSON of a `StoredProblem`."""
    seed = getattr(make_planner(planner.name, planner.parameters), "seed", None)
    stored = {
        "kind": KIND,
        "version": VERSION,
        "rematch": version("rematch"),
        "planner": planner.name,
        "parameters": planner.parameters,
        "seed": seed,
        "fallbacks": plan.notes,
    }
    yield msgspec.json.encode(stored)[:-1] + b',"problem":'
    yield from problem_parts(problem)
    yield b"}"


def decompress(row: ProblemRow) -> bytes:
    """The document of a row that has one."""
    assert row.document is not None
    return zlib.decompress(row.document)


def is_problem(data: bytes) -> bool:
    """Whether this is the JSON of a problem, with or without the planner."""
    return _OUR_KIND.match(data) is not None


def read_problem(data: bytes) -> tuple[Problem, StoredProblem | None]:
    """A problem, and how it was planned if the document says so. Raise ProblemError for anything else."""
    if f'"{KIND}"'.encode() not in data[:100]:
        return problem_from_json(data), None
    try:
        stored = msgspec.json.decode(data, type=StoredProblem)
    except msgspec.DecodeError as error:
        raise ProblemError(f"the stored problem cannot be read: {error}") from error
    if stored.version != VERSION:
        raise ProblemError(f"this is version {stored.version} of a stored problem; version {VERSION} is known")
    return stored.decode(), stored
