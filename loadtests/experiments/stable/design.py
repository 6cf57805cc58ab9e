"""The experiment as values: nodes, apps, rates, arms and the order in which they are run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from loadtests.workloads.placement import NodeSpec
from reactor.settings.model import Settings

_MIB = 1024 * 1024
OURS, PAPER = "stable", "stable-paper"
PREDICTIVE = f"{OURS}+predictive"
"""Our planner and settings, and the trigger that does not wait for probes to fail."""
PAPER_RAW = f"{PAPER}+raw"
"""The paper's planner with distances in the paper's own units, cores and GB, instead of shares of capacity."""
RAW_UNITS = {"cpu": 0.05, "memory": 128.0 * _MIB}
"""What stands for a core and for a GB of the paper here: its 12 cores and 12 GB are 600 millicores and 1536 MiB."""
PAPER_RATES = tuple(range(50, 151, 10))
"""Requests per second and app in the paper; here they are the names of the eleven steps."""
THRESHOLDS = (0.7, 0.8, 0.9)
FROZEN_AT = 120
"""The step whose placements are tested again at all rates (phase B)."""
CAPACITY_AT = 125.0
"""Where all nodes together are full. The paper's placements were stable up to 120 and dumped pods from 130 on."""
QUIET_STEPS = 3
PAPER_STEP_SECONDS = 300.0
LEAST_SEEDS = 3
"""With two, Student's interval is 13 standard errors wide to each side: nothing could be judged by it."""
MOST_SEEDS = 50


class Phase(StrEnum):
    DEFAULT = "default"
    """kube-scheduler's placement, left alone."""
    LIVE = "live"
    """Phase A: the rate rises, the controller acts."""
    FROZEN = "frozen"
    """Phase B: the last settled placement that the live run had up to the step FROZEN_AT, left alone."""


@dataclass(frozen=True, slots=True)
class Arm:
    phase: Phase
    planner: str = ""
    threshold: float = 0.0

    @property
    def name(self) -> str:
        return "kube-scheduler" if self.phase is Phase.DEFAULT else f"{self.phase} {self.planner} {self.threshold:g}"

    @property
    def planner_name(self) -> str:
        """As the settings know it."""
        return self.planner.partition("@")[0].partition("+")[0]

    @property
    def revision(self) -> str:
        """Of the controller, in git; empty: this one."""
        return self.planner.partition("@")[2]

    def frozen(self) -> Arm:
        return Arm(Phase.FROZEN, self.planner, self.threshold)


KUBE_SCHEDULER = Arm(Phase.DEFAULT)
OUR_LIVE = Arm(Phase.LIVE, OURS, Settings().happiness.threshold)
PREDICTIVE_LIVE = replace(OUR_LIVE, planner=PREDICTIVE)


def earlier_live(revision: str) -> Arm:
    """Our live arm with the controller of another revision."""
    return replace(OUR_LIVE, planner=f"{OURS}@{revision}")


@dataclass(frozen=True, slots=True)
class Step:
    index: int
    paper_rate: int

    @property
    def share(self) -> float:
        """Of what all nodes together can serve."""
        return self.paper_rate / CAPACITY_AT


STEPS = tuple(Step(index, rate) for index, rate in enumerate(PAPER_RATES))


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a step is, the same in every arm, and how often a kubelet probes."""

    seconds: float
    probe_period: int
    quiet_seconds: float = 0.0
    """Of the first three steps, in which nothing fails; 0: as the others."""
    beyond_seconds: float = 0.0
    """Of the steps from 120 on, in which the nodes are full and no placement helps; 0: as the others."""
    timeout: float = 2.0
    """Of a request."""

    def of(self, step: Step) -> float:
        if step.index < QUIET_STEPS:
            return self.quiet_seconds or self.seconds
        return self.beyond_seconds or self.seconds if step.paper_rate >= FROZEN_AT else self.seconds

    @property
    def total(self) -> float:
        """Of a run, with what is waited for the last answers."""
        return sum(map(self.of, STEPS)) + self.timeout


SHORT = Pace(seconds=11.0, probe_period=1, quiet_seconds=1.5, beyond_seconds=3.0)
"""For real nodes. Too short for the paper's planner: the next step begins in the middle of its rematches."""
MINUTE = Pace(seconds=60.0, probe_period=2)
"""All steps alike, and long enough for a plan to be finished before the next step."""
FULL = Pace(seconds=PAPER_STEP_SECONDS, probe_period=10)
PACES = {"short": SHORT, "minute": MINUTE, "full": FULL}


@dataclass(frozen=True, slots=True)
class Run:
    arm: Arm
    seed: int


@dataclass(frozen=True, slots=True)
class Design:
    pace: Pace
    goal_seeds: tuple[int, ...]
    """Of the arms that the goal compares."""
    other_seeds: tuple[int, ...]
    frozen_planners: tuple[str, ...] = (OURS, PAPER)
    """Whose placements phase B tests."""
    planners: tuple[str, ...] = (OURS, PAPER)
    thresholds: tuple[float, ...] = THRESHOLDS
    nodes: tuple[NodeSpec, ...] = (
        NodeSpec("node1", 0.6, 1536 * _MIB, 30),
        NodeSpec("node2", 0.25, 1024 * _MIB, 30),
        NodeSpec("node3", 0.4, 2048 * _MIB, 30),
    )
    """The paper's 12:5:8 cores and 12:8:16 GB."""
    apps: int = 15
    against: str = ""
    """A revision whose controller is run live beside ours, with the seeds of the goal."""
    predictive: bool = False
    """Also run ours with `decision.trigger: predictive`, live, with the seeds of the goal."""

    @property
    def cores(self) -> float:
        return sum(node.cores for node in self.nodes)

    def runs(self) -> list[Run]:
        """What the goal needs comes first, so that a run cut short is worth most; a live run before its frozen one."""
        return list(dict.fromkeys((*self._goal_runs(), *self._other_runs())))

    def seconds(self) -> float:
        """Of load; set-up comes on top."""
        return self.pace.total * len(self.runs())

    def _goal_runs(self) -> Iterator[Run]:
        for seed in self.goal_seeds:
            yield Run(KUBE_SCHEDULER, seed)
            yield Run(OUR_LIVE, seed)
            if self.against:
                yield Run(earlier_live(self.against), seed)
            if self.predictive:
                yield Run(PREDICTIVE_LIVE, seed)
            yield Run(OUR_LIVE.frozen(), seed)

    def _other_runs(self) -> Iterator[Run]:
        for seed in self.other_seeds:
            yield Run(KUBE_SCHEDULER, seed)
            for planner in self.planners:
                for threshold in self.thresholds:
                    live = Arm(Phase.LIVE, planner, threshold)
                    yield Run(live, seed)
                    if planner in self.frozen_planners:
                        yield Run(live.frozen(), seed)


def short_design(planners: tuple[str, ...], seeds: int = 3) -> Design:
    """About 15 minutes: what the goal does not compare is run with one seed, the paper's planner only live."""
    return Design(SHORT, tuple(range(1, seeds + 1)), (1,), (OURS,), planners)


def long_design(pace: Pace, planners: tuple[str, ...], seeds: int = 3) -> Design:
    """Hours on real nodes: every arm with every seed."""
    every = tuple(range(1, seeds + 1))
    return Design(pace, every, every, planners, planners)


def simulated_design(pace: Pace, planners: tuple[str, ...], seeds: int = 3) -> Design:
    """Simulated time costs little: every arm with every seed."""
    every = tuple(range(1, seeds + 1))
    return Design(pace, every, every, planners, planners)
