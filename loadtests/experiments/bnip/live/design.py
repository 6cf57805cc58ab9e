"""What is run on the real nodes, and how it is scaled from the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from loadtests.experiments.bnip.design import ARMS, DEMANDS, Arm
from loadtests.experiments.bnip.design import NODES as PAPER_NODES
from loadtests.nodes.apps import LabApp
from loadtests.nodes.spec import SYSTEM_MEMORY_MIB, LabNodeSpec
from loadtests.zero_loss.design import PATIENT, WORK, MovedApp


@dataclass(frozen=True, slots=True)
class PaperLoad:
    rate: int
    """Requests per second."""
    kept: bool
    """Connections are used again, as by the paper's tool; else every request goes where the routes of the moment lead,
    as those of new users do."""

    @property
    def connections(self) -> str:
        return "kept" if self.kept else "new"


LOADS = (PaperLoad(1000, kept=False), PaperLoad(1500, kept=True))
"""The rates of its screenshots and of its text."""
CONNECTIONS = 8
UPDATE_SECONDS = 60.0
TIMEOUT = 2.0
SCALES = (1.0, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1)
"""Of a rate: the largest is taken that these nodes carry while nothing changes."""


class Change(StrEnum):
    """What is done to the pods under load."""

    PLAIN_UPDATE = "plain rolling update"
    UPDATE = "rolling update with its ingredients"
    PLAIN_MOVE = "our move, plain pods"
    MOVE = "our move, with its ingredients"

    @property
    def app(self) -> str:
        return PLAIN.app.name if self in (Change.PLAIN_UPDATE, Change.PLAIN_MOVE) else CAREFUL.app.name

    @property
    def by_rematch(self) -> bool:
        return self in (Change.PLAIN_MOVE, Change.MOVE)


_EXITS = {**WORK, "DRAIN_MS": "-1"}
REPLICAS = 2
PLAIN = MovedApp(
    LabApp("plain", cpu="5m", environment=_EXITS, probe=PATIENT, replicas=REPLICAS, grace_seconds=10, readiness=False),
    "exits at once; no readiness probe, no preStop hook, no PodDisruptionBudget",
    budget=False,
)
CAREFUL = MovedApp(
    LabApp(
        "careful", cpu="5m", environment=_EXITS, probe=PATIENT, replicas=REPLICAS, grace_seconds=10, pre_stop_seconds=5
    ),
    "exits at once; readiness probe, preStop hook of 5 s, PodDisruptionBudget",
)

PAPER_USERS = (100, 500, 1000, 2000, 5000, 10_000)
MANY = 2000
"""Concurrent requests of the paper above which its failures are compared."""
USERS_SCALE = 20
"""The paper's users by ours; its nodes have ten times the CPU, and their links five times the bandwidth."""
LINK_SCALE = 5
LOAD_SECONDS = 10.0
"""Of each number of users; the paper's 30."""
BYTES_PER_MBIT = 2000
"""Of an answer: every app gets the same rate, so the traffic is in the ratio of the demands."""
PLACED_BY: tuple[Arm, Arm] = (ARMS[0], ARMS[1])
_SCALE = 10
_EVICTION_MIB = 64
NODES = tuple(
    LabNodeSpec(
        node.name,
        node.cores * 1000 // _SCALE,
        SYSTEM_MEMORY_MIB + _EVICTION_MIB + node.gigabytes * 1000 // _SCALE,
        eviction_mib=_EVICTION_MIB,
    )
    for node in PAPER_NODES
)
LINKS: Mapping[str, float] = {node.name: node.mbit / LINK_SCALE for node in PAPER_NODES}
"""Mbit/s."""


def web_app(pod: str) -> LabApp:
    """As much CPU and memory of its node as in the paper, and an answer that is as long as its demand says."""
    environment = {
        **WORK,
        "WORKERS": "64",
        "BACKLOG": "4096",
        "BODY_BYTES": str(round(DEMANDS[pod] * BYTES_PER_MBIT)),
    }
    annotations = {"rematch.io/network-bps": f"{DEMANDS[pod]:g}M"}
    return LabApp(pod, cpu="10m", memory="16Mi", environment=environment, probe=PATIENT, annotations=annotations)


def update_runs(repeats: int) -> list[tuple[Change, PaperLoad, int]]:
    return [(change, load, repeat) for repeat in range(1, repeats + 1) for load in LOADS for change in Change]


def concurrency_runs(repeats: int) -> list[tuple[Arm, int]]:
    """Of one placement with all numbers of users. The order of the arms changes from repeat to repeat."""
    return [
        (arm, repeat)
        for repeat in range(1, repeats + 1)
        for arm in (PLACED_BY if repeat % 2 else PLACED_BY[::-1])
    ]  # fmt: skip
