"""Whatever a kubelet does and however its news arrive, F is never above the failures there were."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactor.cluster.records import Container, Event, Pod, Probe
from reactor.signals.container_probes import LOOK_BACK
from reactor.signals.measurements import ProbeCounter
from reactor.signals.probe_counts import HalfLife
from reactor.signals.probes import ProbeHistory

FOREVER = 1e18
THRESHOLD = 3
MESSAGES = ("HTTP probe failed with statuscode: 500", "EOF", "connection refused")
START = 10_000.0


@dataclass
class Kubelet:
    """Probes one container: events through the spam filter, counters, kills; counts what really happened."""

    skew: float
    failures: int = 0
    counted: int = 0
    succeeded: int = 0
    run: int = 0
    tokens: float = 25.0
    tokens_at: float = START
    generation: int = 0
    events: dict[str, Event] = field(default_factory=dict)

    def probe(self, now: float, ok: bool, message: int) -> list[Event]:
        if ok:
            self.succeeded += 1
            self.run = 0
            return []
        self.failures += 1
        self.counted += 1
        self.run += 1
        sent: list[Event] = []
        self.tokens, self.tokens_at = min(25.0, self.tokens + (now - self.tokens_at) / 300), now
        if self.tokens >= 1:
            self.tokens -= 1
            sent.append(self._send(f"m{message}", "Unhealthy", f"Liveness probe failed: {MESSAGES[message]}", now))
        if self.run == THRESHOLD:
            self.run = 0
            sent.append(self._send("kill", "Killing", "Container srv failed liveness probe, will be restarted", now))
        return sent

    def restart(self) -> None:
        self.counted = self.succeeded = self.run = 0
        self.tokens = 25.0
        self.generation += 1

    def read(self, now: float) -> ProbeCounter:
        return ProbeCounter("default", "web-1", "srv", float(self.succeeded), float(self.counted), now, "u1")

    def _send(self, key: str, reason: str, message: str, now: float) -> Event:
        name = f"web-1.{key}.{self.generation}"
        old = self.events.get(name)
        dated = float(int(now + self.skew))
        event = Event(
            uid=f"uid-{name}",
            namespace="default",
            name=name,
            resource_version="1",
            reason=reason,
            type="Warning" if reason == "Unhealthy" else "Normal",
            message=message,
            involved_name="web-1",
            involved_uid="u1",
            field_path="spec.containers{srv}",
            count=old.count + 1 if old else 1,
            first=old.first if old else dated,
            last=dated,
            component="kubelet",
        )
        self.events[name] = event
        return event


@dataclass
class Scene:
    kubelet: Kubelet
    history: ProbeHistory = field(default_factory=lambda: ProbeHistory(HalfLife(FOREVER)))
    now: float = START
    undelivered: list[tuple[float, Event]] = field(default_factory=list)
    scraped: ProbeCounter | None = None

    def __post_init__(self) -> None:
        container = Container("srv", Probe(period=1.0, failure_threshold=THRESHOLD), 0, START)
        pod = Pod("u1", "default", "web-1", "1", {}, {}, START, phase="Running", containers=(container,))
        self.history.observe_pod(pod, START)

    def deliver(self, *, everything: bool = False) -> None:
        due = [item for item in self.undelivered if everything or item[0] <= self.now]
        self.undelivered = [item for item in self.undelivered if item not in due]
        for _, event in due:
            self.history.observe_event(event, self.now, listed=False)

    def relist(self) -> None:
        """After a broken watch: the server's state, in any order; what was on its way is lost."""
        self.undelivered.clear()
        for event in reversed(list(self.kubelet.events.values())):
            self.history.observe_event(event, self.now, listed=True)

    def check(self) -> None:
        counted = self.history.counts("u1", self.now).failures
        assert counted <= self.kubelet.failures + 1e-6, f"{counted} counted, {self.kubelet.failures} happened"


Step = tuple[str, float, int]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("fail"), st.floats(0.5, 15.0), st.integers(0, 2)),
        st.tuples(st.just("fail"), st.floats(0.5, 2.0), st.just(0)),
        st.tuples(st.just("ok"), st.floats(0.5, 15.0), st.just(0)),
        st.tuples(st.sampled_from(["scrape", "poll", "relist", "redeliver"]), st.floats(0.0, 40.0), st.just(0)),
        st.tuples(st.just("restart"), st.floats(0.0, 5.0), st.just(0)),
        st.tuples(st.just("outage"), st.floats(20.0, 400.0), st.just(0)),
    ),
    max_size=120,
)


def play(scene: Scene, step: Step, delay: float, *, counters: bool) -> None:
    what, wait, message = step
    scene.now += wait
    if what == "outage":
        scene.relist()
    scene.deliver()
    kubelet = scene.kubelet
    if what in ("fail", "ok"):
        for event in kubelet.probe(scene.now, what == "ok", message):
            scene.undelivered.append((scene.now + delay, event))
        scene.deliver()
    elif what == "relist":
        scene.relist()
    elif what == "redeliver":
        for event in kubelet.events.values():
            if all(event is not waiting for _, waiting in scene.undelivered):
                scene.history.observe_event(event, scene.now, listed=False)
    elif what == "restart":
        kubelet.restart()
    elif what == "scrape":
        scene.scraped = kubelet.read(scene.now)
    elif what == "poll" and counters and scene.scraped is not None and scene.now - scene.scraped.at < LOOK_BACK:
        scene.history.observe_counters([scene.scraped], scene.now)


def run(script: list[Step], delay: float, skew: float, *, counters: bool) -> Scene:
    scene = Scene(Kubelet(skew))
    for step in script:
        play(scene, step, delay, counters=counters)
        scene.check()
    scene.now += 10.0
    scene.deliver(everything=True)
    scene.check()
    return scene


@settings(max_examples=150, deadline=None)
@given(steps, st.floats(0.0, 4.0), st.floats(-600.0, 0.0))
def test_never_more_than_happened_and_exact_with_counters(script: list[Step], delay: float, skew: float) -> None:
    scene = run(script, delay, skew, counters=True)
    for _ in range(2):
        scene.now += 30.0
        scene.history.observe_counters([scene.kubelet.read(scene.now)], scene.now)
        scene.check()
    if not scene.kubelet.generation:
        assert scene.history.counts("u1", scene.now).failures == pytest.approx(scene.kubelet.failures)


@settings(max_examples=100, deadline=None)
@given(steps, st.floats(0.0, 8.0), st.floats(-600.0, 600.0))
def test_never_more_than_happened_by_events_alone(script: list[Step], delay: float, skew: float) -> None:
    scene = run(script, delay, skew, counters=False)
    assert scene.history.counts("u1", scene.now).failures <= scene.kubelet.failures + 1e-6


@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), max_size=24), st.floats(0.0, 8.0))
def test_every_failure_reported_by_an_event_counts(probes: list[bool], delay: float) -> None:
    script: list[Step] = [("ok" if ok else "fail", 10.0, 0) for ok in probes]
    scene = run(script, delay, 0.0, counters=False)
    assert scene.history.counts("u1", scene.now).failures == pytest.approx(scene.kubelet.failures)


@settings(max_examples=60, deadline=None)
@given(steps, st.integers(0, 120))
def test_a_restart_of_ours_changes_nothing(script: list[Step], when: int) -> None:
    plain = run(script, 1.0, 0.0, counters=True)
    scene = Scene(Kubelet(0.0))
    pod = Pod(
        "u1", "default", "web-1", "1", {}, {}, START, phase="Running",
        containers=(Container("srv", Probe(period=1.0, failure_threshold=THRESHOLD), 0, START),),
    )  # fmt: skip
    for index, step in enumerate(script):
        if index == when:
            rows = scene.history.export(scene.now, changed_only=False)
            scene.history = ProbeHistory(HalfLife(FOREVER))
            scene.history.restore(rows)
            scene.history.observe_pod(pod, scene.now)
        play(scene, step, 1.0, counters=True)
    scene.now += 10.0
    scene.deliver(everything=True)
    assert scene.history.counts("u1", scene.now).failures == pytest.approx(
        plain.history.counts("u1", plain.now).failures
    )
