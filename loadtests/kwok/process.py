"""KWOK's process beside a control plane."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from loadtests.controlplane import Component, ControlPlane
from loadtests.controlplane.process import ComponentProcess
from loadtests.tools import ensure

PLANE_FLAGS = {Component.CONTROLLER_MANAGER: ("--node-monitor-grace-period=2h",)}
"""Fake nodes renew their leases so seldom that it costs nothing; they must not count as dead for that."""

_LEASE_SECONDS = 3600
_PARALLEL = 16
_POD_RANGE = "10.64.0.0/10"


@asynccontextmanager
async def kwok(plane: ControlPlane) -> AsyncIterator[ComponentProcess]:
    """Plays every node of the plane and the pods on it until the block ends."""
    programs = await ensure(["kwok", "kwok-stages.yaml"])
    folder = plane.layout.options.folder
    command = [
        str(programs["kwok"]),
        f"--kubeconfig={plane.kubeconfig}",
        f"--config={programs['kwok-stages.yaml']}",
        f"--config={_write_options(folder / 'kwok.yaml')}",
        "--manage-all-nodes",
        f"--node-lease-duration-seconds={_LEASE_SECONDS}",
        f"--cidr={_POD_RANGE}",
    ]
    process = ComponentProcess("kwok", command, folder / "log" / "kwok.log")
    process.start()
    try:
        yield process
    finally:
        process.stop()


def _write_options(path: Path) -> Path:
    parallel = ("podPlayStageParallelism", "nodePlayStageParallelism", "nodeLeaseParallelism")
    options = dict.fromkeys(parallel, _PARALLEL)
    content = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}
    path.write_text(yaml.safe_dump(content))
    return path
