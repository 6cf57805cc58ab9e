"""Round trips that meters have measured, the last two of each pod, and the rounds of the planner `latency`.

A message counts only for the running pod whose namespace, name and UID it names, in the namespace of its topic: whoever
may publish for one namespace can make trouble for the pods of this namespace at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from matching.problem import Latency, LatencyMeasurement, Role
from matching.registry import parameter_fields, planner_class
from matching.selectors import matches
from reactor.clock import Clock
from reactor.cluster.records import Pod
from reactor.settings.model import Latency as LatencySettings
from reactor.settings.model import Settings
from reactor.settings.selector import parse_selector
from reactor.signals.latency_messages import FUTURE, LatencyMessage, Refusal, parse_message

PLANNERS = ("latency", "latency-published")


@dataclass(frozen=True, slots=True)
class Measured:
    rtt: float
    jitter: float | None
    loss: float
    at: float


@dataclass(frozen=True, slots=True)
class _OpenMove:
    first_visit: str
    """The node that this move alone has visited; empty when others had."""
    left: str
    """The node that a target leaves; empty when the pod is a probe."""


@dataclass(slots=True)
class LatencyRounds:
    """What is known since the last quiet time. A node is visited from the plan on: another plan does not choose it
    again. It is not when the move did not take place."""

    moved_at: float
    number: int = 1
    visited: set[str] = field(default_factory=set)
    known: dict[str, float] = field(default_factory=dict)
    """By node, the last round trip that was measured there."""
    left: set[str] = field(default_factory=set)
    """Nodes from which a target has moved away."""
    _open: dict[str, _OpenMove] = field(default_factory=dict)

    def reserve(self, move: str, role: Role, source: str, target: str, now: float) -> None:
        """The move is planned or under way."""
        if move in self._open:
            return
        first_visit = "" if target in self.visited else target
        self._open[move] = _OpenMove(first_visit, source if role is Role.TARGET else "")
        self.visited |= {source, target}
        self.moved_at = now

    def arrived(self, move: str, now: float) -> None:
        if (done := self._open.pop(move, None)) is not None:
            self.moved_at = now
            self.left |= {done.left} - {""}

    def rolled_back(self, move: str) -> None:
        """The pod did not get to the node."""
        if (undone := self._open.pop(move, None)) is not None:
            self.visited.discard(undone.first_visit)

    def forget_others(self, moves: Iterable[str]) -> None:
        """Of moves that this process does not follow any more, such as those of a leader that was replaced."""
        for move in self._open.keys() - set(moves):
            self.rolled_back(move)

    def advance(self, now: float, quiet: float) -> None:
        """A new round begins after the quiet time without a move."""
        if self.visited and not self._open and now - self.moved_at >= quiet:
            self.visited.clear()
            self.known.clear()
            self.left.clear()
            self.number += 1


class LatencySignals:
    def __init__(self, settings: Callable[[], Settings], clock: Clock, pod: Callable[[str], Pod | None]) -> None:
        """`pod` finds a pod of the cluster by its UID."""
        self._settings = settings
        self._clock = clock
        self._pod = pod
        self._heard: dict[str, tuple[Measured, ...]] = {}
        """The last two of each pod, by UID."""
        self.rounds = LatencyRounds(clock.now())
        self.accepted_at: float | None = None
        """When the last message was accepted."""

    def observe(self, topic: str, payload: bytes) -> Refusal | None:
        """None when the message is accepted."""
        parsed = parse_message(payload)
        if isinstance(parsed, Refusal):
            return parsed
        message, at = parsed
        settings, now = self._settings().latency, self._clock.now()
        refused = self._foreign(topic, message, settings) or self._untimely(message.uid, at, now, settings)
        if refused is not None:
            return refused
        if message.rtt_seconds is None:
            self.forget(message.uid)
            return Refusal.UNANSWERED
        heard = Measured(message.rtt_seconds, message.jitter_seconds, message.loss, at)
        self._heard[message.uid] = (*self._heard.get(message.uid, ())[-1:], heard)
        self.accepted_at = now
        pod, confirmed = self._pod(message.uid), self.measured(message.uid)
        if confirmed is not None and pod is not None and pod.node is not None:
            self.rounds.known[pod.node] = confirmed.rtt
        return None

    def measured(self, uid: str) -> Measured | None:
        """The last measurement of a pod, if it is fresh, with the lower round trip of it and the one before: a single
        one may be long by chance, never short. None before there are two."""
        freshness = self._settings().latency.freshness
        match self._heard.get(uid, ()):
            case (before, last) if self._clock.now() - last.at <= freshness and last.at - before.at <= freshness:
                return replace(last, rtt=min(before.rtt, last.rtt))
        return None

    def fresh(self) -> int:
        """Pods with a fresh measurement."""
        return sum(self.measured(uid) is not None for uid in self._heard)

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._heard.pop(uid, None)

    def role(self, pod: Pod) -> Role | None:
        settings = self._settings().latency
        if not settings.broker or (settings.namespaces and pod.namespace not in settings.namespaces):
            return None
        if matches(parse_selector(settings.target), pod.labels):
            return Role.TARGET
        return Role.PROBE if matches(parse_selector(settings.probe), pod.labels) else None

    def start_cycle(self, now: float) -> None:
        if self._settings().planner.name in PLANNERS:
            self.rounds.advance(now, quiet_seconds(self._settings()))

    def freeze(self, pods: Iterable[Pod], now: float) -> Latency | None:
        """The planner's input, of the pods that are there. None while it is off."""
        settings = self._settings()
        if not settings.latency.broker or settings.planner.name not in PLANNERS:
            return None
        roles, last = {}, {}
        for pod in pods:
            role = None if pod.finished or pod.deleting is not None else self.role(pod)
            if role is None:
                continue
            roles[pod.key] = role
            if (found := self.measured(pod.uid)) is not None:
                last[pod.key] = LatencyMeasurement(found.rtt, found.at)
        rounds = self.rounds
        visited, left = frozenset(rounds.visited), frozenset(rounds.left)
        return Latency(now, rounds.moved_at, roles, last, visited, dict(rounds.known), left)

    def _foreign(self, topic: str, message: LatencyMessage, settings: LatencySettings) -> Refusal | None:
        listened = not settings.namespaces or message.namespace in settings.namespaces
        if topic != f"{settings.topic}/{message.namespace}" or not listened:
            return Refusal.FOREIGN_NAMESPACE
        pod = self._pod(message.uid)
        known = pod is not None and (pod.namespace, pod.name) == (message.namespace, message.pod)
        if pod is None or not known or pod.node is None or pod.finished or pod.deleting is not None:
            return Refusal.UNKNOWN_POD
        return Refusal.NO_ROLE if self.role(pod) is None else None

    def _untimely(self, uid: str, at: float, now: float, settings: LatencySettings) -> Refusal | None:
        heard = self._heard.get(uid, ())
        known = heard[-1] if heard else None
        if at > now + FUTURE:
            return Refusal.FUTURE
        if known is not None and at == known.at:
            return Refusal.DUPLICATE
        if now - at > settings.freshness or (known is not None and at < known.at):
            return Refusal.LATE
        return None


def quiet_seconds(settings: Settings) -> float:
    """The planner's parameter, or its default."""
    return _parameter(settings, "quiet")


def needed_measurements(settings: Settings) -> int:
    return int(_parameter(settings, "measurements"))


def _parameter(settings: Settings, name: str) -> float:
    return float(settings.planner.parameters.get(name, _default(settings.planner.name, name)))


@lru_cache(maxsize=8)
def _default(planner: str, parameter: str) -> float:
    """Cached, because each look-up reads the metadata of all installed packages."""
    value = parameter_fields(planner_class(planner))[parameter].default
    assert isinstance(value, int | float)
    return value
