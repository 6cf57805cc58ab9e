"""The extender behind the real kube-scheduler: BNIP's nine pods go where its formula says."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadtests.experiments.bnip.design import ARMS, groups, use_of
from loadtests.experiments.bnip.lab import open_lab

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


async def test_the_nine_pods_are_placed_as_the_formula_says(tmp_path: Path) -> None:
    async with open_lab(tmp_path / "lab") as lab:
        deployed = await lab.deploy(ARMS[-1])
    assert groups(deployed.placement) == "node1 {3, 8}, node2 {2, 5, 9}, node3 {1, 4, 6, 7}"
    assert round(use_of(deployed.placement).variance, 1) == 7.6
    assert deployed.scheduler is not None, "kube-scheduler has timed its decisions"
