"""What this project says about a cluster, through the path of the controller: JSON, decoding, snapshot, problem."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from loadtests.oracle.judge import Question
from loadtests.same_plans.draw import LEFT_OUT, PLANNERS, Draw, Json, random_parameters
from matching.explain import explain
from matching.problem import Options, Scope
from matching.registry import known_planners
from reactor.cli.planning import make_plan
from reactor.cluster.dump import read_dump
from reactor.cluster.pod_constraints import unsupported_constraints
from reactor.cluster.records import Pod
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.eligibility import PROTECTED, Eligibility
from reactor.errors import InputError, RematchError
from reactor.planning.pending import pending_pods
from reactor.planning.problem_builder import ProblemBuilder, fits_now
from reactor.settings.load import parse_settings
from reactor.settings.model import Settings
from reactor.state.from_dump import snapshot_from_dump
from reactor.state.snapshot import Snapshot

_NAME = "cluster.json"
_SECONDS_TO_PLAN = 20.0
_LOCAL_DATA = tuple(check for check in PROTECTED if check.name == "local data")


@dataclass(frozen=True, slots=True)
class Opinion:
    """Whether we would put the pod there; `reason` says why not."""

    fits: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlannedSequence:
    """The moves of one plan, in its order; `refused` instead of moves where the planner refuses the problem.

    Pods that the plan dumps are evicted first.
    """

    planner: str
    questions: tuple[Question, ...] = ()
    moves: int = 0
    own_pending: tuple[str, ...] = ()
    """UIDs of the pending pods that only we would place."""
    refused: str = ""


class PlanTooLong(RematchError):
    """A planner did not end."""


@contextmanager
def _cpu_deadline(seconds: float, planner: str) -> Iterator[None]:
    """By CPU time, because the machine may be busy. Works in the main thread only, as signals do."""

    def stop(_number: int, _frame: object) -> None:
        raise PlanTooLong(f"planner {planner} did not end within {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


class OurSide:
    """Our reading of the objects of one cluster."""

    def __init__(self, items: Sequence[Json]) -> None:
        content = json.dumps({"kind": "List", "apiVersion": "v1", "items": list(items)}).encode()
        self._dump = read_dump([_NAME], {_NAME: content})
        self._settings = Settings()
        self._snapshot = snapshot_from_dump(self._dump, self._settings).snapshot

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def pairs(self) -> list[Question]:
        """Every pod that takes or wants room, with every node that it is not on."""
        cluster = self._snapshot.cluster
        return [
            Question(pod.uid, node)
            for pod in cluster.pods.values()
            if not pod.finished and not pod.gates and pod.deleting is None
            for node in cluster.nodes
            if node != pod.node
        ]

    def opinions(self, pairs: Sequence[Question]) -> list[Opinion]:
        vetoes: dict[str, str] = {}
        opinions = []
        for pair in pairs:
            pod = self._snapshot.cluster.pods[pair.uid]
            if pair.uid not in vetoes:
                vetoes[pair.uid] = self._veto(pod)
            opinions.append(self._opinion(pod, pair.node, vetoes[pair.uid]))
        return opinions

    def _opinion(self, pod: Pod, node: str, veto: str) -> Opinion:
        if veto:
            return Opinion(fits=False, reason=veto)
        return Opinion(fits_now(pod, node, self._snapshot, ()))

    def _veto(self, pod: Pod) -> str:
        """What keeps us from moving or binding the pod at all, as far as it concerns where the pod can run."""
        if unsupported := unsupported_constraints(pod, self._snapshot.cluster):
            return f"unsupported {', '.join(unsupported)}"
        if pod.node is None:
            return ""
        protected = Eligibility(self._snapshot, Cooldowns(), self._settings).why_not(pod, _LOCAL_DATA)
        return str(protected) if protected is not None else ""

    def why_not(self, pair: Question) -> str:
        """The obstacle that `rematch explain` would name."""
        snapshot = self._snapshot
        builder = ProblemBuilder(snapshot)
        for other in snapshot.cluster.pods.values():
            if other.node is not None and not other.finished and other.uid != pair.uid:
                builder.add(other, fixed="is there already")
        pod = snapshot.cluster.pods[pair.uid]
        builder.add(replace(pod, node=None))
        found = explain(builder.problem(Options(scope=Scope.PENDING)), pair.uid)
        return next((each.reason for each in found.why_not if each.node == pair.node), "not said")

    def plans(self, seed: int) -> Iterator[PlannedSequence]:
        """The moves of every planner, with random parameters."""
        missing = set(known_planners()) - {*PLANNERS, *LEFT_OUT}
        if missing:
            raise InputError(f"no random parameters for the planner {', '.join(sorted(missing))}; add it to PLANNERS")
        for planner in (*PLANNERS, *LEFT_OUT):
            yield self.plan_of(planner, seed)

    def plan_of(self, planner: str, seed: int) -> PlannedSequence:
        draw = Draw(f"oracle {seed} {planner}")
        settings = _settings(draw, planner, list(self._snapshot.cluster.nodes))
        snapshot = snapshot_from_dump(self._dump, settings).snapshot
        try:
            with _cpu_deadline(_SECONDS_TO_PLAN, planner):
                plan = make_plan(snapshot, settings).plan
        except InputError as error:
            return PlannedSequence(planner, refused=str(error))
        evictions = (Question.eviction(left.uid) for left in plan.dumped)
        moves = (Question(move.uid, move.target, move=True) for move in plan.moves)
        pending = pending_pods(snapshot, settings)
        own = (*pending.reserved_nodes, *(pod.uid for pod in pending.unsupported))
        return PlannedSequence(planner, (*evictions, *moves), len(plan.moves), own)


def _settings(draw: Draw, planner: str, nodes: Sequence[str]) -> Settings:
    parameters = random_parameters(draw, planner, [{"name": name} for name in nodes])
    document = {
        "planner": {
            "name": planner,
            "parameters": parameters,
            "scope": draw.choice(["cluster", "cluster", "affected", "unhappy"]),
            "inertia": draw.choice([0, 0.05]),
            "headroom": draw.choice([0, 0.05]),
            "maxMoves": draw.choice([2, 5, 20]),
            "maxMovesPerWorkload": draw.choice([1, 3]),
        },
        "decision": {"minimumFailures": 0, "nodePressure": 0.4, "placementProbability": 0},
        "execution": {"allowLocalData": draw.chance(0.3)},
    }
    return parse_settings(json.dumps(document), "settings", f"{__name__}:{send_away.__name__}")


def send_away(pods: Sequence[Any], nodes: Sequence[Any]) -> dict[str, str]:
    """For the planner `function`: every pod wants the node after its own, whatever stands in its way."""
    names = [node.name for node in nodes]
    at = {name: position for position, name in enumerate(names)}
    return {pod.name: names[(at.get(pod.node, -1) + 1) % len(names)] for pod in pods}
