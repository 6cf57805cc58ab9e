"""What the planners make of one workload, and what finding it cost."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from loadtests.experiments.genetic.design import AXES, Placement, TestPod, draw_pods, plan

KUBE_SCHEDULER = "kube-scheduler"
ARMS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "genetic": ("genetic", {}),
    "genetic, 0.5 on the strong node": ("genetic", {"node_weights": {"strong": dict.fromkeys(AXES, 0.5)}}),
    "genetic, network alone": ("genetic", {"weights": {"network": 1.0}}),
    "genetic, disk alone": ("genetic", {"weights": {"disk": 1.0}}),
    "balance": ("balance", {"confidence": 0.0}),
}


class Outcome(Struct, frozen=True):
    seed: int
    """Of the workload."""
    placements: Mapping[str, Mapping[str, str]]
    """By arm."""
    cpu_seconds: Mapping[str, float]
    moves: Mapping[str, int]

    @property
    def pods(self) -> list[TestPod]:
        return draw_pods(self.seed)


def outcome(seed: int, default: Placement) -> Outcome:
    """All planners start from kube-scheduler's placement."""
    pods = draw_pods(seed)
    planned = {arm: plan(planner, parameters, pods, default) for arm, (planner, parameters) in ARMS.items()}
    placements = {KUBE_SCHEDULER: default, **{arm: each.placement for arm, each in planned.items()}}
    seconds = {arm: each.cpu_seconds for arm, each in planned.items()}
    return Outcome(seed, placements, seconds, {arm: each.moves for arm, each in planned.items()})
