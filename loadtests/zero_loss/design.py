"""What is compared: ways of moving, and apps that end in different ways."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loadtests.nodes.apps import LabApp, ProbeTimes

WORK = {"ITERATIONS": "50000", "PROBE_ITERATIONS": "1000", "GOMAXPROCS": "1"}
"""A tenth of a millisecond per request: requests are lost to moves here, not to a want of CPU."""
PATIENT = ProbeTimes(period=1, timeout=5, failures=10)
DRAIN_SECONDS = 3


class Way(StrEnum):
    """How the pods are moved."""

    CHOSEN = "chosen"
    """By Rematch with its default strategies: what it chooses itself."""
    RELEASE_SURGE = "releaseSurge"
    SCALE_SURGE = "scaleSurge"
    EVICT = "evict"
    """By Rematch, with a hint, so that the replacement goes to the planned node."""
    PLAIN = "plain eviction"
    """The eviction API and nothing else, one pod of an app after the other."""
    DESCHEDULER = "descheduler"
    """The descheduler program with its plugin PodLifeTime, which evicts all pods that are old enough in one pass."""

    @property
    def by_rematch(self) -> bool:
        return self not in (Way.PLAIN, Way.DESCHEDULER)

    @property
    def strategies(self) -> list[str]:
        """That Rematch may use."""
        return ["scaleSurge", "releaseSurge", "evict"] if self is Way.CHOSEN else [self.value]


@dataclass(frozen=True, slots=True)
class MovedApp:
    app: LabApp
    ending: str
    """In words, for the report."""
    budget: bool = True
    """Whether it has a PodDisruptionBudget, with several replicas."""


def _app(name: str, ending: str, replicas: int, drain_ms: int, pre_stop: int = 0) -> MovedApp:
    environment = {**WORK, "DRAIN_MS": str(drain_ms)}
    lab_app = LabApp(
        name, cpu="5m", environment=environment, probe=PATIENT, replicas=replicas, grace_seconds=10,
        pre_stop_seconds=pre_stop,
    )  # fmt: skip
    return MovedApp(lab_app, ending)


_DRAINS = f"drains {DRAIN_SECONDS} s on SIGTERM, no preStop"
_EXITS = "exits at once, no preStop"
APPS = (
    _app("drains-1", _DRAINS, 1, DRAIN_SECONDS * 1000),
    _app("drains-2", _DRAINS, 2, DRAIN_SECONDS * 1000),
    _app("exits-1", _EXITS, 1, -1),
    _app("exits-2", _EXITS, 2, -1),
    _app("hook-1", f"exits at once, preStop sleeps {DRAIN_SECONDS} s", 1, -1, DRAIN_SECONDS),
)
