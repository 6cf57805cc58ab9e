"""The cooldowns as a document of the state object: a restart or a new leader must not release them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec
from msgspec import Struct

from reactor.decision.brakes import Brakes
from reactor.decision.cooldowns import Backoff, Cooldowns, Lineage
from reactor.decision.effects import Effects
from reactor.decision.limits import RecentMoves
from reactor.decision.wait_reasons import Reason

DOCUMENT = "cooldowns"
MAX_BYTES = 24_000
"""Of the 64 KiB of the state object."""
BRAKE_DOCUMENT = "brake"
MAX_BRAKE_BYTES = 22_000
_LONGEST_TEXT = 200
_REASONS = frozenset(Reason)
T = TypeVar("T")


class _Lineage(Struct, omit_defaults=True):
    moved: float
    generation: int
    predecessor: str = ""


class _Backoff(Struct, omit_defaults=True):
    until: float
    reason: str
    """A newer version may have reasons that we do not know."""
    text: str = ""


class _Document(Struct, omit_defaults=True):
    at: float
    lineage: dict[str, _Lineage] = {}
    relieved: dict[str, float] = {}
    backoffs: dict[str, _Backoff] = {}


def to_document(cooldowns: Cooldowns, now: float, limit: int = MAX_BYTES) -> tuple[str, int]:
    """The text, and how many entries were left out because it would be too large: the oldest ones."""
    dropped = 0
    lineage = _newest(cooldowns.lineage, {uid: line.moved for uid, line in cooldowns.lineage.items()})
    relieved = _newest(cooldowns.relieved, cooldowns.relieved)
    backoffs = _newest(cooldowns.backoffs, {uid: backoff.until for uid, backoff in cooldowns.backoffs.items()})
    while True:
        document = _Document(
            now,
            {uid: _Lineage(line.moved, line.generation, line.predecessor) for uid, line in lineage},
            dict(relieved),
            {uid: _Backoff(one.until, one.reason, one.text[:_LONGEST_TEXT]) for uid, one in backoffs},
        )
        text = msgspec.json.encode(document)
        if len(text) <= limit:
            return text.decode(), dropped
        before = len(lineage) + len(relieved) + len(backoffs)
        share = 0.9 * limit / len(text)
        lineage, relieved, backoffs = _first(lineage, share), _first(relieved, share), _first(backoffs, share)
        dropped += before - len(lineage) - len(relieved) - len(backoffs)


def from_document(text: str, now: float) -> Cooldowns:
    """Raises ValueError. A clock that has been set back since does not prolong anything."""
    saved = msgspec.json.decode(text, type=_Document)
    back = max(0.0, saved.at - now)
    return Cooldowns(
        {uid: Lineage(line.moved - back, line.generation, line.predecessor) for uid, line in saved.lineage.items()},
        {node: at - back for node, at in saved.relieved.items()},
        {uid: Backoff(one.until - back, _reason(one.reason), one.text) for uid, one in saved.backoffs.items()},
    )


def merged(saved: Cooldowns, known: Cooldowns) -> Cooldowns:
    """What is newer wins. What this process only observed, while another one led, holds nobody back."""
    tried = {uid: one for uid, one in known.backoffs.items() if one.reason is not Reason.OBSERVED}
    return replace(
        known,
        lineage={
            **saved.lineage,
            **{uid: line for uid, line in known.lineage.items() if _newer(line, saved.lineage.get(uid))},
        },
        relieved={
            node: max(at, known.relieved.get(node, at)) for node, at in {**known.relieved, **saved.relieved}.items()
        },
        backoffs={**tried, **saved.backoffs},
    )


class _BrakeDocument(Struct):
    at: float
    brakes: Brakes = Brakes()
    recent: RecentMoves = RecentMoves()
    effects: Effects = Effects()


def brake_document(cooldowns: Cooldowns, now: float, limit: int = MAX_BRAKE_BYTES) -> str:
    """Brakes, limits and effects. Where that would be too large, the newest of each are kept."""
    effects, brakes, most = cooldowns.effects, cooldowns.brakes, 1024
    while True:
        document = _BrakeDocument(
            now,
            Brakes(brakes.held[:most], brakes.misses[-most:], brakes.errors[-most:]),
            RecentMoves(cooldowns.recent.started[-most:]),
            Effects(
                dict(_newest(effects.trials, {uid: trial.judged_at for uid, trial in effects.trials.items()})[:most]),
                dict(_newest(effects.failures, {key: one.at for key, one in effects.failures.items()})[:most]),
            ),
        )
        text = msgspec.json.encode(document)
        if len(text) <= limit or most == 0:
            return text.decode()
        most = int(most * min(0.9, limit / len(text)))


def with_brakes(cooldowns: Cooldowns, text: str, now: float) -> Cooldowns:
    """Raises ValueError. A clock that has been set back since does not prolong a brake."""
    saved = msgspec.json.decode(text, type=_BrakeDocument)
    back = max(0.0, saved.at - now)
    held = tuple(replace(brake, since=brake.since - back, until=brake.until - back) for brake in saved.brakes.held)
    misses = tuple(replace(miss, at=miss.at - back) for miss in saved.brakes.misses)
    brakes = Brakes(held, misses, tuple(at - back for at in saved.brakes.errors))
    earlier = RecentMoves(tuple(replace(move, at=move.at - back) for move in saved.recent.started))
    recent = earlier.after(cooldowns.recent.started)
    return replace(cooldowns, brakes=brakes, recent=recent, effects=saved.effects)


def _newer(line: Lineage, other: Lineage | None) -> bool:
    return other is None or line.moved > other.moved


def _reason(text: str) -> Reason:
    return Reason(text) if text in _REASONS else Reason.NO_BETTER_NODE


def _newest(entries: Mapping[str, T], times: Mapping[str, float]) -> list[tuple[str, T]]:
    return sorted(entries.items(), key=lambda entry: (-times[entry[0]], entry[0]))


def _first(entries: list[tuple[str, T]], share: float) -> list[tuple[str, T]]:
    return entries[: int(len(entries) * share)]
