"""The controller of another revision, as a process beside the experiment."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from loadtests.controlplane.process import ComponentProcess
from loadtests.nodes.spec import LabError
from loadtests.tools.ports import free_ports
from loadtests.tools.revisions import Version, two_versions

_ADDRESS = "127.0.0.1"
_READY_SECONDS = 60.0
_MEASURED_SECONDS = 6.0
"""After it is ready: three scrapes."""
_DEFAULTS = (
    "import json; from reactor.settings.model import Settings; print(json.dumps(Settings().model_dump(by_alias=True)))"
)
_ANSWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class EarlierVersion:
    version: Version
    defaults: Mapping[str, Any]
    """Of its settings."""

    @classmethod
    @contextmanager
    def checked_out(cls, revision: str) -> Iterator[EarlierVersion]:
        """Installed in an environment of its own, which is removed with the block."""
        with two_versions(revision) as (version, _):
            command = [str(version.python), "-c", _DEFAULTS]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False, cwd=version.tree
            )
            if done.returncode:
                raise LabError(f"{revision} does not tell its default settings: {done.stderr.strip()[-300:]}")
            yield cls(version, json.loads(done.stdout))

    @asynccontextmanager
    async def running(self, settings: Mapping[str, Any], kubeconfig: Path, folder: Path) -> AsyncIterator[None]:
        """Ready, and it has measured the nodes."""
        written = folder / "settings.yaml"
        written.write_text(yaml.safe_dump({"apiVersion": "rematch/v1alpha1", "kind": "Settings", **settings}))
        (port,) = free_ports(_ADDRESS, 1)
        command = [
            *(str(self.version.rematch), "run", "--settings", str(written), "--kubeconfig", str(kubeconfig)),
            *("--store", str(folder / "rematch.db"), "--port", "0", "--probe-port", str(port), "--log-format", "json"),
        ]
        process = ComponentProcess(f"rematch of {self.version.commit[:7]}", command, folder / "earlier-version.log")
        process.start()
        try:
            await _until_ready(f"http://{_ADDRESS}:{port}/readyz")
            await asyncio.sleep(_MEASURED_SECONDS)
            yield
        finally:
            process.stop()


async def _until_ready(url: str) -> None:
    try:
        async with asyncio.timeout(_READY_SECONDS), aiohttp.ClientSession() as session:
            while not await _answers(session, url):
                await asyncio.sleep(0.2)
    except TimeoutError as error:
        raise LabError(f"the controller of the other revision was not ready within {_READY_SECONDS:g} s") from error


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False
