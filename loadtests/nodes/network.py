"""The lab's network: addresses, a bridge, a link to every node, and a blackhole route for the rest of its range."""

from __future__ import annotations

import re
from dataclasses import dataclass

from loadtests.tools.processes import CommandFailed, run

SLOTS = 16
_FIRST_NETWORK = 200


@dataclass(frozen=True, slots=True)
class Addresses:
    """`slot` is the number of this lab on this machine, from 0."""

    slot: int

    @property
    def bridge(self) -> str:
        return f"rematch{self.slot}"

    @property
    def host(self) -> str:
        """The machine itself, as the nodes see it: control plane, Prometheus and metrics server listen here."""
        return f"{self._network}.0.1"

    @property
    def nodes(self) -> str:
        return f"{self._network}.0.0/24"

    @property
    def everything(self) -> str:
        return f"{self._network}.0.0/16"

    @property
    def services(self) -> str:
        return f"{self._network}.255.0/24"

    @property
    def api_service(self) -> str:
        """The Service `kubernetes` always has the first address of the range."""
        return f"{self._network}.255.1"

    def node(self, number: int) -> str:
        return f"{self._network}.0.{number + 10}"

    def pods(self, number: int) -> str:
        return f"{self._network}.{number}.0/24"

    def link(self, number: int) -> str:
        """The host's end of a node's cable; the kernel takes 15 characters."""
        return f"rm{self.slot}n{number}"

    def owns(self, link: str) -> bool:
        """The bridge and every link to it."""
        return link == self.bridge or re.fullmatch(rf"rm{self.slot}n\d+", link) is not None

    @property
    def _network(self) -> str:
        return f"10.{_FIRST_NETWORK + self.slot}"


_SECONDS = 20.0


async def ip(*arguments: str) -> str:
    return await run(["ip", *arguments], deadline=_SECONDS)


async def make_bridge(addresses: Addresses, nodes: int) -> None:
    """With the host's ways to the pods of every node; a route that is there already is an error, not replaced."""
    await ip("link", "add", addresses.bridge, "type", "bridge")
    await ip("addr", "add", f"{addresses.host}/24", "dev", addresses.bridge)
    await ip("link", "set", addresses.bridge, "up")
    await ip("route", "add", "blackhole", addresses.everything)
    for number in range(1, nodes + 1):
        await ip("route", "add", addresses.pods(number), "via", addresses.node(number), "dev", addresses.bridge)


async def connect(addresses: Addresses, number: int, pid: int, nodes: int) -> None:
    """A cable into the network namespace of `pid`.

    Pods are reached through their nodes, on the same bridge. There is no default route, so nothing leaves the machine.
    """
    link = addresses.link(number)
    await _perhaps("link", "del", link)  # of a node that was killed: the kernel takes its time to remove it
    await ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    await ip("link", "set", link, "master", addresses.bridge, "up")
    others = (other for other in range(1, nodes + 1) if other != number)
    for arguments in (
        ["link", "set", "lo", "up"],
        ["addr", "add", f"{addresses.node(number)}/24", "dev", "eth0"],
        ["link", "set", "eth0", "up"],
        ["route", "add", addresses.services, "via", addresses.host],
        *(["route", "add", addresses.pods(other), "via", addresses.node(other)] for other in others),
    ):
        await inside(pid, "ip", *arguments)


async def serve_pods(addresses: Addresses, pid: int, port: int) -> None:
    """What a node does for its pods: it forwards, and one rule is the one Service they use, kubernetes.default."""
    await inside(pid, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    target = f"{addresses.host}:{port}"
    rule = ["-d", addresses.api_service, "-p", "tcp", "--dport", "443", "-j", "DNAT", "--to-destination", target]
    for chain in ("PREROUTING", "OUTPUT"):
        await inside(pid, "iptables", "-t", "nat", "-A", chain, *rule)


async def inside(pid: int, *arguments: str) -> str:
    """In the network of a node; by nsenter, because `ip netns exec` would hide the cgroups."""
    return await run(["nsenter", "--target", str(pid), "--net", *arguments], deadline=_SECONDS)


async def network_traces(addresses: Addresses) -> list[str]:
    """The lab's links, and whatever route there is in its range."""
    routes = await ip("-4", "route", "show", "table", "all", "root", addresses.everything)
    return [*await _links(addresses), *(f"the route {line.strip()}" for line in routes.splitlines())]


async def remove_network(addresses: Addresses) -> None:
    """The routes to the pods go with the bridge."""
    for link in await _links(addresses):
        await _perhaps("link", "del", link)
    await _perhaps("route", "del", "blackhole", addresses.everything)


async def _links(addresses: Addresses) -> list[str]:
    names = re.findall(r"(?m)^\d+: ([^:@\s]+)", await ip("-oneline", "link", "show"))
    return [name for name in names if addresses.owns(name)]


async def _perhaps(*arguments: str) -> None:
    """What is gone already need not be removed."""
    try:
        await ip(*arguments)
    except CommandFailed as error:
        if not any(known in str(error) for known in ("Cannot find device", "No such process")):
            raise
