"""The oracle as a child process: what the API server and kube-scheduler's own plugins say about a cluster."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests.same_plans.draw import Json
from loadtests.tools.catalogue import ORACLE
from loadtests.tools.processes import ends_with_us
from loadtests.tools.programs import ensure
from reactor.errors import RematchError

KINDS = frozenset(
    {
        "Pod",
        "Node",
        "Namespace",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "StorageClass",
        "CSINode",
        "CSIDriver",
        "CSIStorageCapacity",
        "VolumeAttachment",
    }
)
"""What kube-scheduler's filters depend on; other objects are not sent."""
_SECONDS_TO_ANSWER = 60.0
_SECONDS_TO_END = 5.0
_LONGEST_LINE = 2**27


class OracleFailed(RematchError):
    """The oracle did not answer, or did not understand."""


@dataclass(frozen=True, slots=True)
class Question:
    """Would kube-scheduler put this pod, or its replacement if it runs already, on this node?"""

    uid: str
    node: str
    move: bool = False
    """The pod is on that node for the questions after this one."""

    @classmethod
    def eviction(cls, uid: str) -> Question:
        """No question: the pod is evicted, and its replacement waits for a node."""
        return cls(uid, "", move=True)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`plugin` and `message` are empty where the pod fits."""

    fits: bool
    plugin: str = ""
    message: str = ""

    def __str__(self) -> str:
        return "fits" if self.fits else f"{self.plugin}: {self.message}"


@dataclass(frozen=True, slots=True)
class Loaded:
    stored: tuple[Json, ...]
    """As the API server keeps them: with defaults, and as its strategies change them."""
    refused: tuple[str, ...]
    """What the API server would not take, and why."""


class Oracle:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def load(self, items: Sequence[Json]) -> Loaded:
        answer = await self._ask({"load": [item for item in items if item["kind"] in KINDS]})
        refused = (f"{each['object']}: {each['message']}" for each in answer.get("invalid", ()))
        return Loaded(tuple(answer.get("stored", ())), tuple(refused))

    async def judge(self, questions: Sequence[Question], decided: Iterable[str] = ()) -> list[Verdict]:
        """In order, from the state that was loaded. `decided`: UIDs of pods whose `nominatedNodeName` does not count:
        whoever asks decides about them."""
        asked = [{"pod": each.uid, "node": each.node, "move": each.move} for each in questions]
        answer = await self._ask({"judge": asked, "decided": list(decided)}) if asked else {}
        return [
            Verdict(each["fits"], each.get("plugin", ""), each.get("message", "")) for each in answer.get("answers", ())
        ]

    async def _ask(self, request: Json) -> Json:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            async with asyncio.timeout(_SECONDS_TO_ANSWER):
                stdin.write(json.dumps(request).encode() + b"\n")
                await stdin.drain()
                line = await stdout.readline()
        except TimeoutError as error:
            raise OracleFailed(f"the oracle did not answer within {_SECONDS_TO_ANSWER:g} s") from error
        except (ConnectionError, ValueError) as error:
            raise OracleFailed(f"the oracle cannot be talked to: {error}") from error
        if not line:
            raise OracleFailed("the oracle ended; its last words are on standard error")
        answer: dict[str, Any] = json.loads(line)
        if problem := answer.get("error"):
            raise OracleFailed(f"the oracle refused the request: {problem}")
        return answer


@asynccontextmanager
async def open_oracle(program: Path | None = None) -> AsyncIterator[Oracle]:
    """Builds the program first if it is not there; it ends with this process."""
    path = program or (await ensure([ORACLE]))[ORACLE]
    process = await asyncio.create_subprocess_exec(
        *ends_with_us(),
        str(path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "GOMAXPROCS": "2"},
        limit=_LONGEST_LINE,
    )
    try:
        yield Oracle(process)
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(_SECONDS_TO_END):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
