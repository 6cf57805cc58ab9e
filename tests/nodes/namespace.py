"""A namespace on the real nodes for one test: apps put where the test wants them, a controller to watch over them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yaml

from loadtests.demo.controller import ControllerSpec, RunningController, running_controller
from loadtests.nodes.apps import PORT, LabApp, deployment
from loadtests.nodes.command import lab_settings
from loadtests.nodes.lab import Lab
from loadtests.tools.ports import free_ports
from loadtests.workloads.api import has_condition
from reactor.decision.eligibility import DO_NOT_MOVE
from reactor.errors import ClusterError
from reactor.web.view import PodView

Json = dict[str, Any]
POLL = 0.2
ASK_SECONDS = 20.0
DEADLINE = 90.0
"""Both ample: they only bound a failure, and the machine is shared."""
QUIET_SECONDS = 5.0


def hog(cpu: str) -> LabApp:
    """A neighbour that takes what it can get. It may not be moved, which would help the starved pod as well."""
    return LabApp("hog", cpu=cpu, annotations={DO_NOT_MOVE: "true"})


def settings_for(lab: Lab, namespace: str, **given: Any) -> Json:
    """The lab's own settings for one namespace, measured even more often so that a test is over sooner."""
    settings = lab_settings(lab.prometheus.url, interval="2s")
    settings["managed"] = {"namespaces": [namespace]}
    settings["metrics"]["prometheus"]["timeout"] = "4s"
    return {**settings, **given}


@dataclass(frozen=True, slots=True)
class LabNamespace:
    lab: Lab
    name: str
    folder: Path

    @property
    def _pods_path(self) -> str:
        return f"/api/v1/namespaces/{self.name}/pods"

    async def deploy(self, app: LabApp, *nodes: str) -> None:
        """One replica per node named, bound there by hand and Ready; without nodes they wait for a controller."""
        await self.lab.api.create(f"/apis/apps/v1/namespaces/{self.name}/deployments", deployment(app, self.name))
        if not nodes:
            return
        await self.until(lambda: self._count(app.name, len(nodes)), f"{app.name} has its pods")
        for pod, node in zip(await self.pods(app.name), nodes, strict=True):
            name = pod["metadata"]["name"]
            target = {"kind": "Node", "name": node}
            await self.lab.api.create(
                f"{self._pods_path}/{name}/binding", {"metadata": {"name": name}, "target": target}
            )
        await self.until(lambda: self.is_ready(app.name), f"{app.name} is Ready")

    async def clear(self) -> None:
        """Nobody of this test is left, so that nobody burns the CPU of the next one."""
        path = f"/apis/apps/v1/namespaces/{self.name}/deployments"
        await self.lab.api.delete(path, {"propagationPolicy": "Foreground"})
        await self.until(self._is_empty, "the pods of the test are gone")

    async def _is_empty(self) -> bool:
        return not (await self.lab.api.get(self._pods_path))["items"]

    async def pods(self, app: str) -> list[Json]:
        """Those that are meant to run: neither ending nor ended."""
        found = await self.lab.api.get(self._pods_path, {"labelSelector": f"app={app}"})
        return [
            pod
            for pod in found["items"]
            if "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") not in ("Failed", "Succeeded")
        ]

    async def pod(self, app: str) -> Json:
        (pod,) = await self.pods(app)
        return pod

    async def node_of(self, app: str) -> str:
        return str((await self.pod(app))["spec"].get("nodeName", ""))

    async def is_ready(self, app: str) -> bool:
        pods = await self.pods(app)
        return bool(pods) and all(has_condition(pod, "Ready") for pod in pods)

    async def moved(self, app: str, origin: str) -> bool:
        """Ready on another node."""
        pods = await self.pods(app)
        return len(pods) == 1 and pods[0]["spec"].get("nodeName", origin) != origin and has_condition(pods[0], "Ready")

    async def is_at_peace(self, app: str) -> bool:
        """Ready, and no probe has failed for a while: one before that may be the fault of the shared machine."""
        name = (await self.pod(app))["metadata"]["name"]
        before = await self.liveness_failures(name)
        await asyncio.sleep(QUIET_SECONDS)
        return await self.is_ready(app) and await self.liveness_failures(name) == before

    async def control(self, app: str, what: str) -> None:
        """`what` is a path of the app's control, such as `burn?threads=4&seconds=60`."""
        address = (await self.pod(app))["status"]["podIP"]
        timeout = aiohttp.ClientTimeout(total=ASK_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(f"http://{address}:{PORT}/control/{what}") as answer,
        ):
            assert answer.status == 200

    async def events(self, reason: str = "", **fields: str) -> list[Json]:
        selected = {f"involvedObject.{name}": value for name, value in fields.items()}
        if reason:
            selected["reason"] = reason
        query = {"fieldSelector": ",".join(f"{name}={value}" for name, value in selected.items())} if selected else {}
        items: list[Json] = (await self.lab.api.get(f"/api/v1/namespaces/{self.name}/events", query))["items"]
        return items

    async def liveness_failures(self, pod: str) -> int:
        """As the kubelets count them, asked of Prometheus, which has to know the pod."""
        selector = f'prober_probe_total{{probe_type="Liveness",namespace="{self.name}",pod="{pod}"'
        if await self.measured(f"{selector}}}") is None:
            raise KeyError(f"Prometheus knows nothing of {pod}")
        return int(await self.measured(f'{selector},result="failed"}}') or 0)

    async def measured(self, query: str) -> float | None:
        timeout = aiohttp.ClientTimeout(total=ASK_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{self.lab.prometheus.url}/api/v1/query", params={"query": query}) as answer,
        ):
            result = (await answer.json())["data"]["result"]
        return float(result[0]["value"][1]) if result else None

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str, deadline: float = DEADLINE) -> None:
        try:
            async with asyncio.timeout(deadline):
                while not await _holds(holds):
                    await asyncio.sleep(POLL)
        except TimeoutError:
            raise AssertionError(f"not within {deadline:g} s: {what}; {await self._situation()}") from None

    def write_settings(self, **given: Any) -> Path:
        path = self.folder / "settings.yaml"
        path.write_text(yaml.safe_dump(settings_for(self.lab, self.name, **given)))
        return path

    @asynccontextmanager
    async def controller(self, **settings: Any) -> AsyncIterator[RunningController]:
        """`rematch run` as a process of its own with the rights of its service account, synced and with metrics."""
        token = await self.lab.plane.token("rematch", "rematch")
        kubeconfig = self.lab.plane.write_kubeconfig(self.folder / "kubeconfig", token=token)
        (port,) = free_ports("127.0.0.1", 1)
        spec = ControllerSpec(
            kubeconfig, self.write_settings(**settings), self.folder / "rematch.db", self.folder / "rematch.log", port
        )
        async with running_controller(spec) as controller:
            yield controller

    async def view(self, controller: str, pod: str) -> PodView:
        """As the controller at this URL sees it."""
        timeout = aiohttp.ClientTimeout(total=ASK_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{controller}/api/v1/pods/{self.name}/{pod}") as answer,
        ):
            return msgspec.json.decode(await answer.read(), type=PodView)

    async def failures_by(self, controller: str, pod: str) -> dict[str, float]:
        """Failed liveness probes by the source that told them first: events, counters, kills."""
        happiness = (await self.view(controller, pod)).happiness
        return {each.source: each.failures for each in happiness.sources} if happiness is not None else {}

    async def _count(self, app: str, wanted: int) -> bool:
        return len(await self.pods(app)) == wanted

    async def _situation(self) -> str:
        items = (await self.lab.api.get(self._pods_path))["items"]
        pods = [f"{p['metadata']['name']} on {p['spec'].get('nodeName')} {p['status'].get('phase')}" for p in items]
        ours = [f"{e['reason']}: {e['message']}" for e in await self.events() if e["reason"].startswith("Rematch")]
        log = self.folder / "rematch.log"
        last = log.read_text(errors="replace")[-600:] if log.exists() else ""
        return f"{pods}; {ours[-3:]}; {last}"


async def _holds(condition: Callable[[], Awaitable[bool]]) -> bool:
    """A pod that has just gone, or an answer that does not come now, is no reason to stop looking."""
    try:
        return await condition()
    except (ClusterError, aiohttp.ClientError, KeyError, ValueError, TimeoutError):
        return False
