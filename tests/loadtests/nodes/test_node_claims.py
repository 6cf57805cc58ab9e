"""Which labs there are, on folders that look like the machine's claims and control groups, without a network."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from loadtests.controlplane.process import identity_of
from loadtests.nodes import claims, command
from loadtests.nodes.cgroups import Cgroups, Hierarchy
from loadtests.nodes.claims import Claim, claimed_slot, is_living, living, sweep
from loadtests.nodes.network import SLOTS, Addresses
from loadtests.nodes.spec import LabError
from loadtests.tools.processes import CommandFailed


@dataclass(slots=True)
class Machine:
    root: Path
    broken: set[int] = field(default_factory=set)
    """Slots whose network cannot be removed."""
    routes: dict[int, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    @property
    def claims(self) -> Path:
        return self.root / "claims"

    def leave(self, slot: int, *, for_people: bool = False) -> Claim:
        """What a killed lab leaves behind."""
        owner = identity_of(os.getpid())
        assert owner is not None
        claim = Claim(slot, str(self.root / f"lab{slot}"), ("node1",), owner, for_people)
        (self.claims / str(slot)).write_bytes(msgspec.json.encode(claim))
        (self.root / f"lab{slot}" / "node1").mkdir(parents=True)
        (self.root / "cgroup" / claim.group("node1")).mkdir()
        return claim

    @contextmanager
    def neighbour(self, slot: int) -> Iterator[Claim]:
        claim = self.leave(slot)
        with (self.claims / str(slot)).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield claim

    def cgroups(self) -> Cgroups:
        return Cgroups(2, (Hierarchy(self.root / "cgroup", ""),))

    def has_traces(self, claim: Claim) -> bool:
        return Path(claim.folder).exists() or (self.root / "cgroup" / claim.group("node1")).exists()

    def is_claimed(self, claim: Claim) -> bool:
        return bool((self.claims / str(claim.slot)).stat().st_size) and Path(claim.folder).is_dir()

    async def network_traces(self, addresses: Addresses) -> list[str]:
        return [self.routes[addresses.slot]] if addresses.slot in self.routes else []

    async def remove_network(self, addresses: Addresses) -> None:
        if addresses.slot in self.broken:
            raise CommandFailed(f"ip link del {addresses.bridge} ended with 2")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    made.claims.mkdir()
    (tmp_path / "cgroup").mkdir()
    monkeypatch.setattr(Cgroups, "of_this_machine", made.cgroups)
    monkeypatch.setattr(claims, "remove_network", made.remove_network)
    monkeypatch.setattr(claims, "network_traces", made.network_traces)
    return made


async def claimed(machine: Machine) -> Claim:
    async with claimed_slot(machine.root, ("node1",), progress=machine.said.append, claims=machine.claims) as claim:
        assert machine.is_claimed(claim)
    assert not machine.is_claimed(claim)
    assert not machine.has_traces(claim)
    return claim


async def test_what_a_killed_lab_left_is_removed_and_its_slot_is_free_again(machine: Machine) -> None:
    left = machine.leave(0)
    assert (await claimed(machine)).slot == 0
    assert not machine.has_traces(left)
    assert machine.said == []


async def test_a_living_neighbour_is_left_alone(machine: Machine) -> None:
    with machine.neighbour(0) as neighbour:
        assert await sweep(machine.said.append, machine.claims) == []
        assert living(machine.said.append, machine.claims) == [neighbour]
        assert is_living(neighbour, machine.claims)
        assert (await claimed(machine)).slot == 1
        assert machine.has_traces(neighbour)
    assert living(machine.said.append, machine.claims) == []
    assert machine.said == ["another lab runs (slot 0); this one takes the next free slot"]


async def test_a_claim_that_cannot_be_read_is_told_and_keeps_its_slot(machine: Machine) -> None:
    unreadable = machine.claims / "0"
    unreadable.write_bytes(b"\xff{")
    left = machine.leave(1)
    assert await sweep(machine.said.append, machine.claims) == [left]
    assert len(machine.said) == 1
    assert str(unreadable) in machine.said[0]
    assert (await claimed(machine)).slot == 1
    assert unreadable.read_bytes() == b"\xff{"


async def test_a_step_that_fails_keeps_neither_the_others_nor_other_labs_from_being_removed(machine: Machine) -> None:
    broken, whole = machine.leave(0), machine.leave(1)
    machine.broken.add(0)
    assert await sweep(machine.said.append, machine.claims) == [whole]
    assert "ip link del rematch0 ended with 2" in machine.said[0]
    assert not machine.has_traces(broken)
    assert (await claimed(machine)).slot == 1
    machine.broken.clear()
    assert await sweep(machine.said.append, machine.claims) == [broken]


async def test_all_that_failed_is_named(machine: Machine) -> None:
    left = machine.leave(0)
    machine.broken.add(0)
    (machine.root / "cgroup" / left.group("node1") / "cgroup.procs").write_text("0\n")
    with pytest.raises(LabError, match=r"pid namespace.*; ip link del rematch0"):
        await left.traces.remove()


async def test_what_is_somebody_elses_is_neither_used_nor_removed(machine: Machine) -> None:
    machine.routes[0] = "the route 10.200.0.0/16 via 192.0.2.9 dev eth0"
    foreign = machine.root / "cgroup" / "rematch1-node1"
    foreign.mkdir()
    assert (await claimed(machine)).slot == 2
    assert [machine.routes[0] in machine.said[0], str(foreign) in machine.said[1]] == [True, True]
    assert foreign.exists()


async def test_a_machine_without_a_free_slot_says_so(machine: Machine) -> None:
    machine.routes.update(dict.fromkeys(range(SLOTS), "a route"))
    with pytest.raises(LabError, match="none of the 16 labs"):
        await claimed(machine)


async def test_down_sweeps_even_when_a_lab_does_not_end(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, left = machine.leave(0, for_people=True), machine.leave(1)
    monkeypatch.setattr(command, "_STOP_SECONDS", 0.01)
    monkeypatch.setattr(command, "identity_of", lambda pid: None)
    monkeypatch.setattr(command, "living", lambda progress: [stuck])
    monkeypatch.setattr(command, "is_living", lambda claim: True)
    (machine.claims / "0").write_text("")
    monkeypatch.setattr(command, "sweep", lambda progress: sweep(progress, machine.claims))
    with pytest.raises(LabError, match=f"process {os.getpid()}"):
        await command._down()
    assert not machine.has_traces(left)
