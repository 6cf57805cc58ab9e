"""Random problems full of inter-pod constraints, and the verifier's reference as it answers one question at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from matching.problem import Problem
from matching.testing import problem_with_pod_rules
from matching.verify.reference_pod_rules import PlacedPods


@dataclass
class SlowScheduler:
    problem: Problem
    at: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pods = {pod.key: pod for pod in self.problem.pods}
        self.nodes = {node.name: node for node in self.problem.nodes}
        self.at = {pod.key: pod.node for pod in self.problem.pods}

    def allows(self, key: str, name: str) -> bool:
        here = self.at[key] == name
        return here or PlacedPods(self.problem, self.at).allows(self.pods[key], self.nodes[name])


@pytest.fixture(scope="session")
def inter_pod_problem() -> Callable[..., Problem]:
    return problem_with_pod_rules


@pytest.fixture(scope="session")
def slow_scheduler() -> Callable[..., SlowScheduler]:
    return SlowScheduler
