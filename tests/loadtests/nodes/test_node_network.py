"""The commands that make and remove a lab's network."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from loadtests.nodes import network
from loadtests.nodes.network import Addresses
from loadtests.tools.processes import CommandFailed

LINKS = """\
1: lo: <LOOPBACK,UP> mtu 65536
2: eth0: <BROADCAST> mtu 1500
3: rematch3: <BROADCAST> mtu 1500
4: rm3n1@if2: <BROADCAST> mtu 1500 master rematch3
5: rm3n4@if2: <BROADCAST> mtu 1500 master rematch3
6: rm13n1@if2: <BROADCAST> mtu 1500 master rematch13
"""


class Commands:
    def __init__(self) -> None:
        self.run: list[str] = []
        self.gone: set[str] = set()

    async def __call__(self, command: Sequence[str], *, deadline: float) -> str:
        assert deadline > 0
        line = " ".join(command)
        self.run.append(line)
        if command[-1] in self.gone:
            raise CommandFailed(f'{line} ended with 1: Cannot find device "{command[-1]}"')
        return LINKS if line == "ip -oneline link show" else ""


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    made = Commands()
    monkeypatch.setattr(network, "run", made)
    return made


async def test_every_cable_of_the_lab_is_removed_and_nobody_elses(commands: Commands) -> None:
    commands.gone = {"rm3n1"}
    await network.remove_network(Addresses(3))
    assert commands.run[1:] == [
        "ip link del rematch3",
        "ip link del rm3n1",
        "ip link del rm3n4",
        "ip route del blackhole 10.203.0.0/16",
    ]


async def test_routes_are_never_replaced(commands: Commands) -> None:
    await network.make_bridge(Addresses(3), 2)
    assert "ip route add 10.203.2.0/24 via 10.203.0.12 dev rematch3" in commands.run
    assert not any("replace" in line for line in commands.run)


async def test_a_node_reaches_the_pods_of_the_others_and_nothing_outside(commands: Commands) -> None:
    await network.connect(Addresses(3), 2, 4711, 3)
    routes = [line.partition("route add ")[2] for line in commands.run if "route add" in line]
    assert routes == [
        "10.203.255.0/24 via 10.203.0.1",
        "10.203.1.0/24 via 10.203.0.11",
        "10.203.3.0/24 via 10.203.0.13",
    ]


async def test_the_cable_of_a_killed_node_is_removed_before_the_new_one(commands: Commands) -> None:
    commands.gone = {"rm3n2"}
    await network.connect(Addresses(3), 2, 4711, 3)
    assert commands.run[0] == "ip link del rm3n2"
    assert commands.run[1].startswith("ip link add rm3n2 type veth")
