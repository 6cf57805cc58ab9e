"""Moves by the descheduler program, one pass per round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadtests.tools.descheduler import one_pass, policy_with
from loadtests.tools.processes import run
from loadtests.zero_loss.moving import Landed
from loadtests.zero_loss.pods import AppPods, new_pods
from reactor.clock import Clock

_PASS_SECONDS = 60.0
_OLD_SECONDS = 1


@dataclass(slots=True)
class DeschedulerMover:
    pods: AppPods
    program: Path
    kubeconfig: Path
    folder: Path
    clock: Clock
    problems: list[str] = field(default_factory=list)

    async def round(self, wanted: Mapping[str, int]) -> list[Landed]:
        """It evicts every pod of these apps that their PodDisruptionBudgets let go."""
        before = await self.pods.by_app()
        policy = self.folder / "descheduler-policy.yaml"
        command = one_pass(self.program, self.kubeconfig, policy, descheduler_policy(self.pods.namespace, wanted))
        began = self.clock.now()
        await run(command, deadline=_PASS_SECONDS)
        after = await self.pods.until_complete()
        landed = []
        for app in wanted:
            gone = new_pods(after[app], before[app])
            for old, new in zip(gone, new_pods(before[app], after[app]), strict=True):
                landed.append(Landed(app, old.node, "", new.node, "evict", began, began, None, self.clock.now()))
        return landed


def descheduler_policy(namespace: str, apps: Iterable[str]) -> dict[str, Any]:
    """Its plugin PodLifeTime, the oldest pods first."""
    of_these = {"matchExpressions": [{"key": "app", "operator": "In", "values": sorted(apps)}]}
    life_time = {
        "maxPodLifeTimeSeconds": _OLD_SECONDS,
        "namespaces": {"include": [namespace]},
        "labelSelector": of_these,
    }
    return policy_with("PodLifeTime", life_time, "deschedule")
