"""From what a driver observed to one record: availability as in the paper, and what the moves cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean

from loadtests.experiments.stable.design import Run, Step
from loadtests.experiments.stable.driver import Machine, MoveSpan, Observation
from loadtests.experiments.stable.records import StepRecord
from loadtests.workloads.placement import Placement
from loadtests.workloads.samples import RequestOutcome, summarise, summarise_by_app
from reactor.execution.cycle_outcome import Outcome
from reactor.state.moves import Move, MoveState

AFTERMATH = 1.0
"""Seconds after a replacement is Ready in which a failed request of its app still counts as the move's."""
LEAST_SPARE = 0.1
"""Of the cores that are not promised to the nodes, the share that has to be idle for a valid step."""
LATEST_MS = 50.0
LONGEST_DELAY_MS = 5.0
"""Far below the probes' second; with longer delays than this nodes were seen without the CPU that they are promised."""
_OK, _TIMEOUT = RequestOutcome.OK, RequestOutcome.TIMEOUT
MOST_UNSENT = 0.01
"""A load tool that is later than this on average, or leaves out more, was itself starved."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Which step of which run, how and under how much load."""

    world: str
    tool: str
    run: Run
    step: Step
    rate: float
    seconds: float


def record_of(setting: Setting, seen: Observation, placement: Placement) -> StepRecord:
    whole = summarise(seen.samples)
    by_app = summarise_by_app(seen.samples)
    rates = [one.availability for one in by_app.values() if one.availability is not None]
    return StepRecord(
        world=setting.world,
        tool=setting.tool,
        phase=setting.run.arm.phase,
        planner=setting.run.arm.planner,
        threshold=setting.run.arm.threshold,
        seed=setting.run.seed,
        paper_rate=setting.step.paper_rate,
        rate=setting.rate,
        seconds=setting.seconds,
        requests=whole.requests,
        failures=whole.failures,
        availability=fmean(rates) if rates else 0.0,
        p50_ms=whole.p50_ms or 0.0,
        p95_ms=whole.p95_ms or 0.0,
        p99_ms=whole.p99_ms or 0.0,
        rematches=seen.rematches,
        moves=seen.moves,
        lost_in_moves=lost_in_moves(seen),
        dumped=len(seen.left_out),
        left_out=tuple(seen.left_out),
        without_node=seen.without_node,
        restarts=seen.restarts,
        cores_used=sum(seen.cpu.values()),
        cpu=seen.cpu,
        memory=seen.memory,
        app_cpu=seen.app_cpu,
        app_memory=seen.app_memory,
        settled=seen.settled,
        outside_idle=seen.machine.outside_idle if seen.machine is not None else None,
        delay_ms=seen.machine.delay_ms if seen.machine is not None else None,
        late_ms=seen.machine.late_ms if seen.machine is not None else None,
        unsent=seen.machine.unsent if seen.machine is not None else None,
        valid=seen.machine is None or not saturated(seen.machine),
        placement=placement,
    )


def lost_in_moves(seen: Observation) -> int:
    """Requests to an app while it was being moved that were refused, cut off, or found no endpoint. Those that were
    answered too late fail for want of CPU: an app that is moved is on a crowded node."""
    failed = [
        (sample.app, seen.began + sample.start) for sample in seen.samples if sample.outcome not in (_OK, _TIMEOUT)
    ]
    return sum(
        any(span.app == app and span.began <= at <= span.ended + AFTERMATH for span in seen.spans) for app, at in failed
    )


def saturated(machine: Machine) -> bool:
    """Whether the machine itself, not the nodes' quotas, may have held the pods or the load tool back.

    A machine with idle CPU beside the quotas was not. One without was not either when whoever of the lab wanted to run
    did so at once: then the others took only what the lab did not want. Of one that kept it waiting throughout the step
    nothing good is known.
    """
    if machine.late_ms > LATEST_MS or machine.unsent > MOST_UNSENT or machine.delay_ms is None:
        return True
    return machine.outside_idle < LEAST_SPARE * machine.outside and machine.delay_ms > LONGEST_DELAY_MS


@dataclass(frozen=True, slots=True)
class MoveCounts:
    """Of one step."""

    rematches: int = 0
    """Plans that move or dump somebody."""
    left_out: frozenset[str] = frozenset()
    """Apps that a plan left without a node."""
    moves: int = 0
    """That were completed."""


class ControllerCounter:
    """Of one run. The spans of its moves are kept to the end: a move may reach over several steps."""

    def __init__(self) -> None:
        self._counts = MoveCounts()
        self._spans: dict[str, MoveSpan] = {}
        self.settled: Placement = {}
        """The last placement in which nothing was being moved and every app had a node; whoever sees the pods sets
        it."""

    def count(self, outcome: Outcome) -> None:
        counts = self._counts
        plan = outcome.rematch.plan if outcome.rematch is not None else None
        if plan is not None and (plan.moves or plan.dumped):
            left_out = counts.left_out | {app_of_pod(left.pod) for left in plan.unplaced}
            counts = replace(counts, rematches=counts.rematches + 1, left_out=left_out)
        done = sum(move.state is MoveState.DONE for move in outcome.moves)
        self._counts = replace(counts, moves=counts.moves + done)
        for move in outcome.moves:
            self._follow(move)

    def take(self) -> MoveCounts:
        """What was counted so far; counting starts again."""
        taken, self._counts = self._counts, MoveCounts()
        return taken

    def spans(self) -> tuple[MoveSpan, ...]:
        """Of all moves that were completed or are under way; times are the controller's clock's."""
        return tuple(self._spans.values())

    def _follow(self, move: Move) -> None:
        """A failed or skipped move has no span."""
        began = move.began if move.evicted is None else move.evicted
        if move.owner is not None and began is not None and (move.active or move.state is MoveState.DONE):
            ended = math.inf if move.ended is None else move.ended
            app = move.owner.name.rpartition("-")[0]
            self._spans[move.id] = MoveSpan(app, began, ended)
        else:
            self._spans.pop(move.id, None)


def app_of_pod(pod: str) -> str:
    """`shop/app-07-...`: the apps are named `app-NN`."""
    return "-".join(pod.rpartition("/")[2].split("-")[:2])
