"""Starts the control plane, and stops it whatever happens (`rematch lab control-plane`)."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import click

from loadtests.controlplane.credentials import Credentials, make_credentials, write_kubeconfig
from loadtests.controlplane.flags import LOOPBACK, Layout, Ports
from loadtests.controlplane.options import Component, ControlPlaneOptions
from loadtests.controlplane.process import ComponentProcess, check_folder, remember, remove_leftovers
from loadtests.tools import ensure
from loadtests.tools.ports import free_ports
from loadtests.tools.state_folder import claimed
from loadtests.workloads.api import LabApi
from reactor.cli.stopping import until_stopped
from reactor.clock import Clock, SystemClock
from reactor.errors import ClusterError

_DEADLINE = aiohttp.ClientTimeout(total=10.0)
_ANY_KEY = base64.b64encode(b"compact_rev_key").decode()


async def compact(url: str) -> None:
    """Drops every version before the present one."""
    async with aiohttp.ClientSession(timeout=_DEADLINE, raise_for_status=True) as session:
        async with session.post(f"{url}/v3/kv/range", json={"key": _ANY_KEY}) as answer:
            revision = int((await answer.json())["header"]["revision"])
        async with session.post(f"{url}/v3/kv/compaction", json={"revision": revision, "physical": True}):
            pass


_START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_FOLDERS = ("etcd", "log", "pki")
_KUBECONFIG = "kubeconfig"


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Bound to no event loop: what one loop started another may use."""

    layout: Layout
    processes: Mapping[Component, ComponentProcess]

    @property
    def url(self) -> str:
        return self.layout.url

    @property
    def credentials(self) -> Credentials:
        return self.layout.credentials

    @property
    def ca(self) -> Path:
        return self.credentials.ca.certificate

    @property
    def admin_token(self) -> str:
        return self.credentials.admin_token

    @property
    def kubeconfig(self) -> Path:
        """The admin's."""
        return self.layout.kubeconfig

    def client(self, clock: Clock | None = None, token: str = "") -> LabApi:
        """With the admin's token or another one; the caller closes it."""
        return LabApi(self.url, clock or SystemClock(), token=token or self.admin_token, ca=self.ca)

    def write_kubeconfig(self, path: Path, *, token: str = "", token_file: Path | None = None) -> Path:
        return write_kubeconfig(path, self.url, self.ca, token=token, token_file=token_file)

    async def token(
        self, namespace: str, account: str, *, bound_to: Mapping[str, str] | None = None, seconds: int = 3600
    ) -> str:
        """A service account's token; invalid from when the object it is bound to (kind, name, uid) is deleted."""
        spec: dict[str, Any] = {"expirationSeconds": seconds}
        if bound_to is not None:
            spec["boundObjectRef"] = {"apiVersion": "v1", **bound_to}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        api = self.client()
        try:
            return str((await api.create(path, request))["status"]["token"])
        finally:
            await api.close()

    async def forget_history(self) -> None:
        """Versions before now are gone: etcd is compacted, and the API server's own memory of them dropped.

        Its clients start anew with it: left alone they wait longer after each restart of it, up to half a minute.
        """
        await compact(self.layout.ports.etcd_url)
        for component in (Component.API_SERVER, Component.CONTROLLER_MANAGER, Component.SCHEDULER):
            await self.restart(component)

    async def restart(self, component: Component) -> None:
        """Killed and started again with the same data and port."""
        self.processes[component].stop()
        await self._start(component)

    async def start(self) -> None:
        """In the order in which they need each other; raises with the end of the log of one that does not come up."""
        for component in Component:
            await self._start(component)
        await self._until(Component.CONTROLLER_MANAGER, self._first_account)
        await self._until(Component.SCHEDULER, self._ready)

    def stop(self) -> None:
        """In reverse order. A component that does not end is reported after the others have ended."""
        with ExitStack() as stack:
            for process in self.processes.values():
                stack.callback(process.stop)

    async def _start(self, component: Component) -> None:
        process = self.processes[component]
        process.start()
        found = (each.identity for each in self.processes.values())
        remember(self.layout.options.folder, [identity for identity in found if identity is not None])
        if component is Component.API_SERVER:
            await self._until(component, self._ready)

    async def _ready(self, api: LabApi) -> bool:
        return await api.ready()

    async def _first_account(self, api: LabApi) -> bool:
        """Pods are refused until the controller manager has made it."""
        try:
            await api.get("/api/v1/namespaces/default/serviceaccounts/default")
        except ClusterError:
            return False
        return True

    async def _until(self, component: Component, holds: Callable[[LabApi], Awaitable[bool]]) -> None:
        process, api = self.processes[component], self._who_tells_of(component)
        try:
            async with asyncio.timeout(_START_SECONDS):
                while not await holds(api):
                    self.processes[Component.ETCD].check()
                    process.check()
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError as error:
            words = process.log_tail()
            raise ClusterError(f"{component} was not ready within {_START_SECONDS:g} s: {words}") from error
        finally:
            await api.close()

    def _who_tells_of(self, component: Component) -> LabApi:
        """The scheduler itself, which answers this to everybody; else the API server, as admin."""
        if component is Component.SCHEDULER:
            return LabApi(self.layout.scheduler_url, SystemClock(), ca=self.ca)
        return self.client()


@asynccontextmanager
async def control_plane(options: ControlPlaneOptions) -> AsyncIterator[ControlPlane]:
    check_folder(options.folder)
    programs = await ensure([*Component, "openssl", "setpriv"])
    with claimed(options.folder):
        remove_leftovers(options.folder, (*_FOLDERS, _KUBECONFIG))
        remember(options.folder, ())
        for name in _FOLDERS:
            (options.folder / name).mkdir(mode=0o700)
        layout = await _lay_out(options, programs["openssl"])
        logs = options.folder / "log"
        plane = ControlPlane(
            layout,
            {
                each: ComponentProcess(each, [str(programs[each]), *layout.flags(each)], logs / f"{each}.log")
                for each in Component
            },
        )
        try:
            await plane.start()
            yield plane
        finally:
            plane.stop()


async def _lay_out(options: ControlPlaneOptions, openssl: Path) -> Layout:
    """The API server's port is free on its own address, the others' on loopback."""
    (api,) = free_ports(options.address, 1)
    etcd, peer, controller_manager, scheduler = free_ports(LOOPBACK, 4)
    ports = Ports(api, etcd, peer, controller_manager, scheduler)
    credentials = await make_credentials(openssl, options, options.folder / "pki")
    layout = Layout(options, ports, credentials, options.folder / "etcd", options.folder / _KUBECONFIG)
    write_kubeconfig(layout.kubeconfig, layout.url, credentials.ca.certificate, token=credentials.admin_token)
    return layout


def main(folder: Path) -> None:
    asyncio.run(until_stopped(_up(folder)))
    click.echo("stopped", err=True)


async def _up(folder: Path) -> None:
    async with control_plane(ControlPlaneOptions(folder)) as plane:
        click.echo(f"API server   {plane.url} (no nodes yet)")
        click.echo(f"kubectl      kubectl --kubeconfig {plane.kubeconfig} get namespaces")
        click.echo(f"controller   rematch run --kubeconfig {plane.kubeconfig}")
        click.echo(f"logs         {folder / 'log'}")
        await asyncio.Event().wait()
