"""A small lab that holds still, for a test to kill: `python -m tests.nodes.killed_lab`."""

from __future__ import annotations

import asyncio
import sys

from loadtests.nodes import LabNodeSpec, LabOptions, real_nodes


async def main() -> None:
    async with real_nodes(LabOptions((LabNodeSpec("doomed", 100, 512),))) as lab:
        print(lab.claim.slot, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
