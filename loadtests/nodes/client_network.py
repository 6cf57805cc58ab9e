"""Where the load comes from: a network of its own on the nodes' bridge, with a real kube-proxy for the Services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from loadtests.controlplane.process import ComponentProcess
from loadtests.nodes.lab import Lab
from loadtests.nodes.network import connect
from loadtests.nodes.spec import LabError

_START_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class ClientNetwork:
    pid: int
    """Of the process that holds it."""

    @property
    def prefix(self) -> tuple[str, ...]:
        return ("nsenter", "--target", str(self.pid), "--net")


@asynccontextmanager
async def client_network(lab: Lab, kube_proxy: Path, proxy_delay: str = "0s") -> AsyncIterator[ClientNetwork]:
    """Ends with the block: a namespace goes with its last process, and its cable with it. `proxy_delay` is the least
    time between two updates of kube-proxy's rules, 1 s by default in clusters."""
    folder = lab.folder / "client"
    folder.mkdir(exist_ok=True)
    holder = ComponentProcess("the client network", ["unshare", "--net", "sleep", "infinity"], folder / "client.log")
    holder.start()
    try:
        identity = holder.identity
        assert identity is not None
        await _until_own_network(identity.pid)
        await connect(lab.addresses, len(lab.nodes) + 1, identity.pid, len(lab.nodes))
        network = ClientNetwork(identity.pid)
        command = [*network.prefix, str(kube_proxy), f"--config={_proxy_config(lab, folder, proxy_delay)}"]
        proxy = ComponentProcess("kube-proxy", command, folder / "kube-proxy.log")
        proxy.start()
        try:
            yield network
        finally:
            proxy.stop()
    finally:
        holder.stop()


async def _until_own_network(pid: int) -> None:
    """The process starts in ours and unshares a moment later."""
    try:
        async with asyncio.timeout(_START_SECONDS):
            while _network_of(pid) == _network_of("self"):
                await asyncio.sleep(0.02)
    except (TimeoutError, OSError) as error:
        raise LabError(f"the client network did not come up: {error or 'timeout'}") from error


def _network_of(process: int | str) -> str:
    return str(Path(f"/proc/{process}/ns/net").readlink())


def _proxy_config(lab: Lab, folder: Path, delay: str) -> Path:
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(lab.plane.kubeconfig)},
        "hostnameOverride": "client",
        "bindAddress": "127.0.0.1",
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "iptables": {"syncPeriod": "10s", "minSyncPeriod": delay},
    }
    path = folder / "kube-proxy.yaml"
    path.write_text(yaml.safe_dump(config))
    return path
