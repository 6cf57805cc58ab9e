"""The lab's network: a bridge, a cable to every node, and a black hole for everything else in the lab's range."""

from __future__ import annotations

from loadtests.nodes.addresses import Addresses
from loadtests.tools.commands import CommandFailed, run

_SECONDS = 20.0


async def ip(*words: str) -> str:
    return await run(["ip", *words], deadline=_SECONDS)


async def make_bridge(addresses: Addresses) -> None:
    await ip("link", "add", addresses.bridge, "type", "bridge")
    await ip("addr", "add", f"{addresses.host}/24", "dev", addresses.bridge)
    await ip("link", "set", addresses.bridge, "up")
    await ip("route", "replace", "blackhole", addresses.everything)


async def connect(addresses: Addresses, number: int, pid: int) -> None:
    """A cable into the network namespace of `pid`; pods of other nodes are reached through the host."""
    link = addresses.link(number)
    await ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    await ip("link", "set", link, "master", addresses.bridge, "up")
    await ip("route", "replace", addresses.pods(number), "via", addresses.node(number), "dev", addresses.bridge)
    for words in (
        ["ip", "link", "set", "lo", "up"],
        ["ip", "addr", "add", f"{addresses.node(number)}/24", "dev", "eth0"],
        ["ip", "link", "set", "eth0", "up"],
        ["ip", "route", "add", "default", "via", addresses.host],
        ["sysctl", "-qw", "net.ipv4.ip_forward=1"],
    ):
        await inside(pid, *words)


async def serve_api(addresses: Addresses, pid: int, port: int) -> None:
    """The one Service the lab's pods use, kubernetes.default, as one rule instead of a kube-proxy per node."""
    target = f"{addresses.host}:{port}"
    rule = ["-d", addresses.api_service, "-p", "tcp", "--dport", "443", "-j", "DNAT", "--to-destination", target]
    for chain in ("PREROUTING", "OUTPUT"):
        await inside(pid, "iptables", "-t", "nat", "-A", chain, *rule)


async def inside(pid: int, *words: str) -> str:
    """In the network of a node; by nsenter, because `ip netns exec` would hide the cgroups."""
    return await run(["nsenter", "--target", str(pid), "--net", *words], deadline=_SECONDS)


async def remove_network(addresses: Addresses, numbers: int) -> None:
    for number in range(1, numbers + 1):
        await _perhaps("link", "del", addresses.link(number))
        await _perhaps("route", "del", addresses.pods(number))
    await _perhaps("link", "del", addresses.bridge)
    await _perhaps("route", "del", "blackhole", addresses.everything)


async def _perhaps(*words: str) -> None:
    """What is gone already need not be removed."""
    try:
        await ip(*words)
    except CommandFailed as error:
        if not any(known in str(error) for known in ("Cannot find device", "No such process")):
            raise
