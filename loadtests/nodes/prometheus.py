"""A real Prometheus that scrapes the kubelets, and the controller's queries with shorter windows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from loadtests.controlplane.process import ComponentProcess
from loadtests.nodes.spec import LabError
from loadtests.tools.ports import free_ports
from reactor.settings.model import Queries

_PATHS = {f"kubernetes-nodes-{name}": f"/metrics/{name}" for name in ("cadvisor", "resource", "probes")}
_START_SECONDS = 30.0


_WINDOW = re.compile(r"\[\d+[smh]\]")


def scrape_config(targets: Mapping[str, str], interval: float) -> dict[str, Any]:
    """`targets` is node -> host:port. The node's name is a label, as the usual service discovery adds it."""
    nodes = [{"targets": [target], "labels": {"node": node}} for node, target in targets.items()]
    jobs = [{"job_name": job, "metrics_path": path, "static_configs": nodes} for job, path in _PATHS.items()]
    return {"global": {"scrape_interval": f"{interval:g}s", "scrape_timeout": f"{interval:g}s"}, "scrape_configs": jobs}


@dataclass(frozen=True, slots=True)
class Prometheus:
    address: str
    port: int
    process: ComponentProcess

    @classmethod
    def prepare(cls, program: Path, folder: Path, address: str, config: Mapping[str, Any]) -> Prometheus:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "prometheus.yml").write_text(yaml.safe_dump(dict(config)))
        (port,) = free_ports(address, 1)
        command = [
            str(program),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=1d",
            f"--web.listen-address={address}:{port}",
        ]
        return cls(address, port, ComponentProcess("prometheus", command, folder / "prometheus.log"))

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    async def start(self) -> None:
        self.process.start()
        timeout = aiohttp.ClientTimeout(total=2.0)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            try:
                async with asyncio.timeout(_START_SECONDS):
                    while not await self._ready(session):
                        self.process.check()
                        await asyncio.sleep(0.1)
            except TimeoutError as error:
                words = self.process.log_tail()
                raise LabError(f"Prometheus was not ready within {_START_SECONDS:g} s: {words}") from error

    def stop(self) -> None:
        self.process.stop()

    async def _ready(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(f"{self.url}/-/ready") as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


def queries_over(seconds: int) -> dict[str, str]:
    """The default queries by their names in the settings, with windows of so many seconds: a lab's kubelets look every
    second or two, where cAdvisor needs minutes."""
    defaults: dict[str, str] = Queries().model_dump(by_alias=True)
    return {name: _WINDOW.sub(f"[{seconds}s]", query) for name, query in defaults.items()}
