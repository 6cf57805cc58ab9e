"""One round: moves all the time, faults from a seed, a time to settle, and the judgement."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from loadtests.chaos.audit import Write
from loadtests.chaos.faults import KILLS, FaultKind, draw_faults
from loadtests.chaos.injection import Injected, Injector
from loadtests.chaos.invariants import Evidence, Stretch, Violation, check_all, terms
from loadtests.chaos.moves import count_moves
from loadtests.chaos.patience import insist
from loadtests.chaos.requests import Step
from loadtests.chaos.settling import repair, settle
from loadtests.chaos.timing import BINDING_SECONDS, LEASE_SECONDS, ROUND_SECONDS
from loadtests.chaos.tree import tree
from loadtests.chaos.workloads import WORKLOADS
from loadtests.chaos.world import World

_START_SECONDS = 8.0
"""From the start of a process until it has listed everything, on a busy machine."""
_CALL_SECONDS = 15.0
"""Deadline of the controller's own calls: so long a hanging answer holds it."""
_TAKES_LEADERSHIP = KILLS | {FaultKind.PAUSE, FaultKind.PARTITION}
_TAKES_API = frozenset({FaultKind.API_RESTART, FaultKind.ETCD_RESTART})


@dataclass(frozen=True, slots=True)
class RoundPlan:
    seed: int
    faults: int = 80
    seconds: float = ROUND_SECONDS
    only: frozenset[FaultKind] = frozenset()


@dataclass(frozen=True, slots=True)
class RoundResult:
    plan: RoundPlan
    steps: Mapping[Step, int] = field(default_factory=dict)
    """Accepted writes of ours."""
    moves: int = 0
    takeovers: int = 0
    """How often another process became the leader."""
    settled_seconds: float = 0.0
    seconds: float = 0.0
    violations: tuple[Violation, ...] = ()
    log: tuple[Injected, ...] = ()
    tree: str = ""
    """The commit that was run."""
    lease: float = LEASE_SECONDS

    @property
    def injected(self) -> Counter[FaultKind]:
        return Counter(each.fault.kind for each in self.log)


async def run_round(world: World, plan: RoundPlan) -> RoundResult:
    await _reset(world)
    earlier = world.audit.new_writes()
    world.observer.forget_the_gone()
    began = world.clock.now()
    injector = Injector(world)
    await world.moving(True)
    await injector.carry_out(draw_faults(plan.seed, plan.faults, plan.seconds, plan.only), plan.seconds)
    await world.moving(False)
    calm = world.clock.now()
    left = await settle(world)
    ended = world.clock.now()
    evidence = _evidence(world, injector.injected, earlier, began)
    ours = [write for write in evidence.ours if write.accepted]
    if left:
        await repair(world)
    return RoundResult(
        plan=plan,
        steps=Counter(write.step for write in ours),
        moves=count_moves(ours),
        takeovers=len(terms(ours)) - 1,
        settled_seconds=ended - calm,
        seconds=ended - began,
        violations=(*check_all(evidence), *left),
        log=tuple(injector.injected),
        tree=tree(),
    )


async def _reset(world: World) -> None:
    """Every round starts from the same replicas, so that its seed alone tells what happens."""
    for workload in WORKLOADS:
        if world.wanted[workload.name] != workload.replicas:
            world.want(workload, workload.replicas)
            body = {"spec": {"replicas": workload.replicas}}
            await insist(partial(world.api.patch, workload.path, body))
    async with asyncio.timeout(BINDING_SECONDS * 5):
        while not all(world.complete(workload) for workload in WORKLOADS):
            await world.clock.sleep(0.2)


def _evidence(world: World, injected: Collection[Injected], earlier: Sequence[Write], began: float) -> Evidence:
    return Evidence(
        writes=world.audit.new_writes(),
        earlier=earlier,
        histories=list(world.observer.histories.values()),
        workloads={workload.name: workload for workload in WORKLOADS},
        wishes=world.wishes,
        incarnations=[each for controller in world.controllers for each in controller.incarnations],
        disturbances=[*_api_away(injected), *_disturbances(injected), *_processes_away(world)],
        began=began,
        ended=world.clock.now(),
        binding_seconds=BINDING_SECONDS,
    )


def _api_away(injected: Collection[Injected]) -> Iterator[Stretch]:
    for each in injected:
        if each.fault.kind in _TAKES_API:
            yield Stretch(each.began, each.ended)


def _disturbances(injected: Collection[Injected]) -> Iterator[Stretch]:
    """The controller that acts is held up, or another one has to take over."""
    for each in injected:
        if each.fault.kind in _TAKES_LEADERSHIP:
            yield Stretch(each.began, each.ended + BINDING_SECONDS, away=False)
        elif each.fault.steps:
            yield Stretch(each.began, each.began + _CALL_SECONDS, away=False)


def _processes_away(world: World) -> Iterator[Stretch]:
    """With one controller there is nobody to take over."""
    if len(world.controllers) > 1:
        return
    for before, after in pairwise(world.controllers[0].incarnations):
        yield Stretch(before.until, after.since + _START_SECONDS)
