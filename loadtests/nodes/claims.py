"""Which labs there are on this machine: each holds a slot by a lock that goes with its process, however it ends.

Before a lab makes anything it writes down what it is going to make. So whoever comes next can remove all that a killed
lab left behind, and touches nothing of a living one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from io import TextIOWrapper
from pathlib import Path

import msgspec

from loadtests.controlplane.leftovers import Identity, identity_of, remove_leftovers
from loadtests.nodes.addresses import SLOTS, Addresses
from loadtests.nodes.cgroups import Cgroups
from loadtests.nodes.errors import LabError
from loadtests.nodes.network import remove_network

CLAIMS = Path("/run/rematch-lab")


class Claim(msgspec.Struct, frozen=True):
    slot: int
    folder: str
    nodes: tuple[str, ...]
    owner: Identity
    for_people: bool = False
    """Started by `rematch lab nodes up`, so `down` may end it."""

    def group(self, node: str) -> str:
        return group_name(self.slot, node)


def group_name(slot: int, node: str) -> str:
    return f"rematch{slot}-{node}"


def control_plane_folder(folder: Path) -> Path:
    return folder / "control-plane"


@asynccontextmanager
async def claimed_slot(root: Path, nodes: tuple[str, ...], *, for_people: bool = False) -> AsyncIterator[Claim]:
    """A free slot, swept; its traces are removed at the end, too."""
    await sweep()
    for slot in range(SLOTS):
        with _locked(slot) as file:
            if file is None:
                continue
            owner = identity_of(os.getpid())
            assert owner is not None
            claim = Claim(slot, str(root / f"lab{slot}"), nodes, owner, for_people)
            _write(file, msgspec.json.encode(claim).decode())
            shutil.rmtree(claim.folder, ignore_errors=True)
            os.makedirs(claim.folder)
            try:
                yield claim
            finally:
                await _remove(claim)
                _write(file, "")
            return
    raise LabError(f"all {SLOTS} labs of this machine are in use")


async def sweep() -> list[Claim]:
    """Removes what labs left behind whose process is gone; returns their claims."""
    found = []
    for slot in range(SLOTS):
        with _locked(slot) as file:
            claim = _read(file) if file is not None else None
            if file is not None and claim is not None:
                await _remove(claim)
                _write(file, "")
                found.append(claim)
    return found


def living() -> list[Claim]:
    """Labs whose process runs."""
    found = []
    for slot in range(SLOTS):
        with _locked(slot) as file:
            if file is None and (claim := _read_path(CLAIMS / str(slot))) is not None:
                found.append(claim)
    return found


async def _remove(claim: Claim) -> None:
    cgroups = Cgroups.of_this_machine()
    for node in claim.nodes:
        cgroups.end(claim.group(node))
    await remove_network(Addresses(claim.slot), len(claim.nodes))
    folder = Path(claim.folder)
    if control_plane_folder(folder).exists():
        remove_leftovers(control_plane_folder(folder), ())
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(slot: int) -> Iterator[TextIOWrapper | None]:
    """None when another process holds it."""
    CLAIMS.mkdir(exist_ok=True)
    with (CLAIMS / str(slot)).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
            return
        yield file


def _read(file: TextIOWrapper) -> Claim | None:
    file.seek(0)
    return _decode(file.read())


def _read_path(path: Path) -> Claim | None:
    try:
        return _decode(path.read_text())
    except OSError:
        return None


def _decode(text: str) -> Claim | None:
    try:
        return msgspec.json.decode(text, type=Claim)
    except msgspec.MsgspecError:
        return None


def _write(file: TextIOWrapper, text: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(text)
    file.flush()
