"""A problem and its plan as JSON.

The JSON of a plan is a public format: its keys are camelCase and stay what they are, because scripts read them.

The JSON of a problem is versioned and holds everything that a planner reads, so that planning what was read gives the
same plan. Pods and nodes are written by column. A column is either a list with one value per row, or a table of the
different values and the row numbers that use them (`{"table": [...], "rows": [...]}`; a table with one value needs no
rows). A field that is missing has its default. NaN and infinity are refused on both sides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from matching.missing_text import missing_text
from matching.plan import (
    BlockingPair,
    BlockingPairs,
    Certificate,
    Measures,
    Missing,
    MoveBenefit,
    Plan,
    PlanBenefit,
    PlannedMove,
    PowerUse,
    Rejected,
    Stay,
    Unplaced,
)
from matching.problem import Node, Pod, Problem, ProblemError, from_columns

T = TypeVar("T")
Decode = Callable[[Any, str], Any]
"""From a JSON value and its path to a value of ours; raises ProblemError with the path."""

KIND = "RematchProblem"
PROBLEM_VERSION = 1
PLAN_VERSION = 1

_BY_ROW = {"key", "uid", "name", "usage", "peak", "mean"}
"""Columns whose values hardly repeat. All others have a table."""
_RENAMED: dict[type, dict[str, str]] = {
    PlannedMove: {"source": "from", "target": "to"},
    Unplaced: {"source": "from"},
}
_COMPUTED = {"benefit": ("saved", "ratio"), "missing": ("text",)}
"""Keys of a plan that are written for scripts and follow from the others."""
_LARGEST = 2**63 - 1


def problem_to_json(problem: Problem) -> bytes:
    """Raise ProblemError, with the path of the number, for NaN and infinity."""
    return b"".join(problem_parts(problem))


def problem_parts(problem: Problem) -> Iterator[bytes]:
    """`problem_to_json` in parts, a column at most: that of a large cluster takes tens of MiB, and to write it holds
    up every other thread. Raises as it does."""
    head = {
        "kind": KIND,
        "version": PROBLEM_VERSION,
        "axes": list(problem.axes),
        "hardOnly": list(problem.hard_only),
        "needsFrom": problem.needs_from,
        "estimates": problem.estimates,
        "options": {_name(field): _encode(getattr(problem.options, field.name)) for field in fields(problem.options)},
        "namespaces": _encode(problem.namespaces),
        "latency": _encode(problem.latency),
    }
    yield _dumped(head, "problem")[:-1]
    yield from _column_parts("nodes", Node, problem.nodes)
    yield from _column_parts("pods", Pod, problem.pods)
    yield b"}"


def _column_parts(name: str, kind: type[Pod] | type[Node], rows: Sequence[Pod] | Sequence[Node]) -> Iterator[bytes]:
    before = f',"{name}":{{'
    for field in fields(kind):
        column: Any = [getattr(row, field.name) for row in rows]
        if field.name not in _BY_ROW:
            column = _encode_table(column)
        yield f'{before}"{_name(field)}":'.encode() + _dumped(column, f"problem.{name}.{_name(field)}")
        before = ","
    yield b"}"


def _dumped(value: Any, path: str) -> bytes:
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except ValueError as error:
        where = next(_not_finite(value, path), path)
        raise ProblemError(f"{where} cannot be written as JSON: {error}") from error


def problem_from_json(data: bytes) -> Problem:
    """Raise ProblemError, with the path of the field, for anything that `problem_to_json` does not write."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"problem is not valid JSON: {error}") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise ProblemError(f"problem.kind must be {KIND!r}: this is not the JSON of a problem")
    _check_version(document.get("version"), PROBLEM_VERSION, "problem")
    rest = {key: value for key, value in document.items() if key not in ("kind", "version", "nodes", "pods")}
    values = _decode_fields(Problem, rest, "problem", skip=("nodes", "pods"))
    nodes = _decode_columns(Node, document.get("nodes"), "problem.nodes")
    pods = _decode_columns(Pod, document.get("pods"), "problem.pods")
    return Problem(**values, nodes=tuple(nodes), pods=tuple(pods))


def plan_to_json(plan: Plan, *, stays: bool = True) -> dict[str, Any]:
    """Without `stays` the pods that stay are only counted, in `staying`: most of a plan's size are their lines."""
    staying: dict[str, Any] = {"stays": [_stay(stay) for stay in plan.stays]} if stays else {"staying": len(plan.stays)}
    return {
        "planner": plan.planner,
        "moves": [_move(move) for move in plan.moves],
        **staying,
        "unplaced": [_unplaced(pod) for pod in plan.unplaced],
        "certificate": _certificate(plan.certificate),
        "before": _measures(plan.before),
        "after": _measures(plan.after),
        "notes": list(plan.notes),
        "benefit": _benefit(plan.benefit),
        "missing": None if plan.missing is None else _missing(plan.missing),
        "version": PLAN_VERSION,
    }


def plan_from_json(document: Mapping[str, Any]) -> Plan:
    """What `plan_to_json` wrote, with no `stays` if they were only counted. Keys that a plan does not have are left
    alone: commands add their own. Raise ProblemError with the path of a field that is missing or wrong."""
    _check_version(document.get("version", PLAN_VERSION), PLAN_VERSION, "plan")
    names = {field.name for field in fields(Plan)} - {"certificate"}
    known = {key: value for key, value in document.items() if key in names}
    if "staying" in document:
        known.setdefault("stays", [])
    known |= {key: _without(document[key], *computed) for key, computed in _COMPUTED.items() if document.get(key)}
    if isinstance(document.get("moves"), list):
        known["moves"] = [_without_ratio(move) for move in document["moves"]]
    values = _decode_fields(Plan, known, "plan", skip=("certificate",))
    return Plan(**values, certificate=_read_certificate(document.get("certificate"), "plan.certificate"))


def _without_ratio(move: Any) -> Any:
    if not isinstance(move, Mapping) or not move.get("benefit"):
        return move
    return {**move, "benefit": _without(move["benefit"], "ratio")}


def _without(value: Any, *keys: str) -> Any:
    return {key: each for key, each in value.items() if key not in keys} if isinstance(value, Mapping) else value


def _move(move: PlannedMove) -> dict[str, Any]:
    return {
        "pod": move.pod,
        "uid": move.uid,
        "from": move.source,
        "to": move.target,
        "strategy": move.strategy.value,
        "reasons": list(move.reasons),
        "rank": move.rank,
        "rejected": _rejected(move.rejected),
        "benefit": _benefit(move.benefit),
    }


def _benefit(benefit: PlanBenefit | MoveBenefit | None) -> dict[str, Any] | None:
    """With what is computed from the other figures: scripts should not have to."""
    if benefit is None:
        return None
    figures = {_name(field): getattr(benefit, field.name) for field in fields(benefit)}
    return {**figures, "saved": round(benefit.saved, 3), "ratio": round(benefit.ratio, 3)}


def _missing(missing: Missing) -> dict[str, Any]:
    return {
        **{_name(field): _encode(getattr(missing, field.name)) for field in fields(missing)},
        "text": missing_text(missing),
    }


def _stay(stay: Stay) -> dict[str, Any]:
    return {"pod": stay.pod, "uid": stay.uid, "node": stay.node, "reason": stay.reason}


def _unplaced(pod: Unplaced) -> dict[str, Any]:
    return {
        "pod": pod.pod,
        "uid": pod.uid,
        "from": pod.source,
        "reason": pod.reason,
        "rejected": _rejected(pod.rejected),
    }


def _rejected(nodes: Sequence[Rejected]) -> list[dict[str, Any]]:
    return [{"node": each.node, "reason": each.reason} for each in nodes]


def _certificate(certificate: Certificate) -> dict[str, Any]:
    return {
        "feasible": certificate.feasible,
        "blockingPairs": certificate.blocking_pairs,
        "violations": list(certificate.violations),
        "blocking": [{"pod": p.pod, "node": p.node, "cause": p.cause.value} for p in certificate.blocking],
    }


@dataclass(frozen=True, slots=True)
class _WrittenCertificate:
    feasible: bool
    violations: tuple[str, ...]
    blocking: tuple[BlockingPair, ...]


def _read_certificate(document: Any, path: str) -> Certificate:
    found = dict(_object(document, path))
    count = _decoder(int)(found.pop("blockingPairs", None), f"{path}.blockingPairs")
    values = _decode_fields(_WrittenCertificate, found, path)
    written = _WrittenCertificate(**values)
    if count < len(written.blocking):
        raise ProblemError(f"{path}.blockingPairs is {count}, but {len(written.blocking)} are named")
    pairs = BlockingPairs(written.blocking, count - len(written.blocking))
    return Certificate(written.feasible, written.violations, lambda: pairs)


def _measures(measures: Measures) -> dict[str, Any]:
    return {
        "nodeLoad": dict(measures.node_load),
        "spread": measures.spread,
        "overloaded": list(measures.overloaded),
        "pending": measures.pending,
        "power": None if measures.power is None else _power(measures.power),
    }


def _power(power: PowerUse) -> dict[str, Any]:
    return {"watts": power.watts, "idle": list(power.idle), "idleWatts": power.idle_watts}


def _check_version(version: object, newest: int, path: str) -> None:
    if type(version) is not int or version < 1:
        raise ProblemError(f"{path}.version must be a number from 1 to {newest}, not {_brief(version)}")
    if version > newest:
        raise ProblemError(f"{path}.version is {version}, but this version of Rematch reads up to {newest}: upgrade it")


def _encode(value: Any) -> Any:
    """Fields that have their default are left out."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple):
        return [each if type(each) is float else _encode(each) for each in value]
    if is_dataclass(value):
        found = ((field, getattr(value, field.name)) for field in fields(value))
        return {_name(field): _encode(each) for field, each in found if each != _default(field)}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return {key: _encode(each) for key, each in value.items()}
    return value


def _encode_table(column: Sequence[object]) -> dict[str, Any]:
    """Values that are the same object, or have the same text, share an entry."""
    by_identity: dict[int, int] = {}
    by_text: dict[str, int] = {}
    table: list[Any] = []
    for value in column:
        if id(value) in by_identity:
            continue
        encoded = _encode(value)
        at = by_identity[id(value)] = by_text.setdefault(repr(encoded), len(table))
        if at == len(table):
            table.append(encoded)
    if len(table) == 1:
        return {"table": table}
    return {"table": table, "rows": [by_identity[id(value)] for value in column]}


def _not_finite(value: object, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _not_finite(each, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for at, each in enumerate(value):
            yield from _not_finite(each, f"{path}[{at}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield path


def _decode_columns(kind: type[T], document: Any, path: str) -> list[T]:
    found, known = _object(document, path), _members(kind)  # type: ignore[arg-type]
    _refuse_unknown(found, known, path)
    identity = next(iter(known))
    if not isinstance(found.get(identity), list):
        raise ProblemError(f"{path}.{identity} must be a list")
    number = len(found[identity])
    columns: dict[str, Sequence[object]] = {}
    for name, (field, decode) in known.items():
        here = f"{path}.{name}"
        if name in found:
            columns[field.name] = _decode_column(found[name], number, decode, here)
        else:
            columns[field.name] = [_required(field, here)] * number
    return from_columns(kind, columns)


def _decode_column(column: Any, number: int, decode: Decode, path: str) -> list[object]:
    if isinstance(column, list):
        values = [decode(each, f"{path}[{at}]") for at, each in enumerate(column)]
    else:
        found = _object(column, path)
        _refuse_unknown(found, ("table", "rows"), path)
        table = _decoder(tuple[Any, ...])(found.get("table"), f"{path}.table")
        known = [decode(each, f"{path}.table[{at}]") for at, each in enumerate(table)]
        rows = _decoder(tuple[int, ...])(found["rows"] if "rows" in found else [0] * number, f"{path}.rows")
        if any(not 0 <= row < len(known) for row in rows):
            raise ProblemError(f"{path}.rows must be numbers from 0 to {len(known) - 1}, the rows of the table")
        values = [known[row] for row in rows]
    if len(values) != number:
        raise ProblemError(f"{path} has {len(values)} values for {number} rows")
    return values


def _decode_fields(kind: type, document: Mapping[str, Any], path: str, skip: Sequence[str] = ()) -> dict[str, Any]:
    """The arguments to make such a dataclass with."""
    known = {name: member for name, member in _members(kind).items() if name not in skip}
    _refuse_unknown(document, known, path)
    values: dict[str, Any] = {}
    for name, (field, decode) in known.items():
        here = f"{path}.{name}"
        values[field.name] = decode(document[name], here) if name in document else _required(field, here)
    return values


@cache
def _members(kind: type) -> dict[str, tuple[Field[Any], Decode]]:
    """The fields of a dataclass by their names in JSON."""
    types = get_type_hints(kind)
    return {_name(field, kind): (field, _decoder(types[field.name])) for field in fields(kind)}


@cache
def _decoder(kind: Any) -> Decode:
    """For the type of a field: scalars, enums, dataclasses, tuples, frozensets, mappings by string, and optionals."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value, _: value
    if origin in (Union, UnionType):
        decode = _decoder(args[0])
        return lambda value, path: None if value is None else decode(value, path)
    if origin in (tuple, frozenset):
        return _decode_items(origin, args)
    if origin is not None:
        decode = _decoder(args[1])
        return lambda value, path: {key: decode(each, f"{path}.{key}") for key, each in _object(value, path).items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return lambda value, path: kind(**_decode_fields(kind, _object(value, path), path))
    if issubclass(kind, StrEnum):
        return lambda value, path: _decode_enum(kind, value, path)
    return _decode_number(kind) if kind in (int, float) else _decode_scalar(kind)


def _decode_items(kind: type, args: tuple[Any, ...]) -> Decode:
    """Either any number of values of one type, or as many as there are types."""
    several = kind is frozenset or args[-1] is Ellipsis
    decoders = [_decoder(each) for each in (args[:1] if several else args)]

    def decode(value: Any, path: str) -> Any:
        if not isinstance(value, list):
            raise ProblemError(f"{path} must be a list, not {_brief(value)}")
        if not several and len(value) != len(decoders):
            raise ProblemError(f"{path} must have {len(decoders)} values, not {len(value)}")
        each = decoders * len(value) if several else decoders
        return kind(make(item, f"{path}[{at}]") for at, (make, item) in enumerate(zip(each, value, strict=True)))

    return decode


def _decode_enum(kind: type[StrEnum], value: Any, path: str) -> StrEnum:
    known = [each.value for each in kind]
    if value not in known:
        raise ProblemError(f"{path} must be one of {', '.join(known)}, not {_brief(value)}")
    return kind(value)


def _decode_number(kind: type) -> Decode:
    """JSON keeps whole numbers and fractions apart, and so does this: they look different in the reasons of a plan."""
    kinds = (int,) if kind is int else (int, float)

    def decode(value: Any, path: str) -> Any:
        if type(value) not in kinds:
            raise ProblemError(f"{path} must be a number, not {_brief(value)}")
        if (type(value) is int and abs(value) > _LARGEST) or not math.isfinite(value):
            raise ProblemError(f"{path} must be a finite number of at most 64 bits, not {_brief(value)}")
        return value

    return decode


def _decode_scalar(kind: type) -> Decode:
    def decode(value: Any, path: str) -> Any:
        if type(value) is not kind:
            raise ProblemError(f"{path} must be a {'string' if kind is str else 'boolean'}, not {_brief(value)}")
        return value

    return decode


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ProblemError(f"{path} must be an object, not {_brief(value)}")
    return value


def _refuse_unknown(found: Mapping[str, Any], known: Sequence[str] | Mapping[str, Any], path: str) -> None:
    for key in found:
        if key not in known:
            raise ProblemError(f"{path}.{key[:50]} is unknown; known are {', '.join(known)}")


def _required(field: Field[Any], path: str) -> Any:
    default = _default(field)
    if default is MISSING:
        raise ProblemError(f"{path} is missing")
    return default


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _name(field: Field[Any], kind: type | None = None) -> str:
    """In camelCase."""
    first, *more = field.name.split("_")
    return _RENAMED.get(kind or object, {}).get(field.name) or first + "".join(word.capitalize() for word in more)


def _brief(value: object) -> str:
    return "nothing" if value is None else f"{value!r:.40}"
