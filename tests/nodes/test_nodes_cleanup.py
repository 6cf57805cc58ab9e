"""Nothing stays behind, not even after SIGKILL."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from loadtests.nodes.cgroups import Cgroups
from loadtests.nodes.claims import Claim, group_name, living, sweep
from loadtests.nodes.lab import Lab
from loadtests.nodes.network import Addresses, ip

pytestmark = [pytest.mark.nodes, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

CLONE = Path(__file__).parents[2]


async def test_what_a_killed_lab_leaves_is_removed_by_the_next_one(lab: Lab) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.nodes.killed_lab", cwd=CLONE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(120):
            slot = int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()
    (left,) = [claim for claim in await sweep() if claim.slot == slot]
    assert await _traces(left) == []
    assert lab.claim.slot in {claim.slot for claim in living()}, "a living lab is left alone"


async def _traces(claim: Claim) -> list[str]:
    addresses = Addresses(claim.slot)
    network = await ip("-brief", "link") + await ip("route", "show", "table", "main")
    groups = [str(path) for path in Cgroups.of_this_machine().groups(group_name(claim.slot, "doomed")) if path.exists()]
    names = [name for name in (addresses.bridge, addresses.link(1), addresses.everything) if name in network]
    processes = [f"pid {pid}" for pid in _processes_of(claim.folder)]
    return [*groups, *names, *processes, *_existing(claim.folder)]


def _existing(folder: str) -> list[str]:
    return [folder] if Path(folder).exists() else []


def _processes_of(folder: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if folder.encode() + b"/" in words:
            found.append(int(path.parent.name))
    return found
