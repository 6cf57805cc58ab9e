"""The labs on this machine: each holds a slot by a file lock, and what killed labs left behind is removed.

Before a lab makes anything it writes down what it is going to make. So whoever comes next can remove all that a killed
lab left behind, and touches nothing of a living one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from loadtests.controlplane.process import Identity, identity_of, remove_leftovers
from loadtests.nodes.cgroups import Cgroups
from loadtests.nodes.network import SLOTS, Addresses, network_traces, remove_network
from loadtests.nodes.spec import LabError
from loadtests.tools.processes import Progress
from loadtests.tools.programs import to_stderr
from reactor.errors import RematchError


def control_plane_folder(folder: Path) -> Path:
    return folder / "control-plane"


@dataclass(frozen=True, slots=True)
class Traces:
    addresses: Addresses
    groups: tuple[str, ...]
    folder: Path

    async def found(self) -> list[str]:
        """Groups, links and routes that exist now. If no lab made them, they belong to another program."""
        cgroups = Cgroups.of_this_machine()
        groups = [str(group) for name in self.groups for group in cgroups.groups(name) if group.exists()]
        return [*groups, *await network_traces(self.addresses)]

    async def remove(self) -> None:
        """Every step, whatever became of the others; then one error that names all that failed."""
        failures: list[Exception] = []
        for group in self.groups:
            with _collected(failures):
                Cgroups.of_this_machine().end(group)
        with _collected(failures):
            await remove_network(self.addresses)
        with _collected(failures):
            remove_leftovers(control_plane_folder(self.folder), ())
        with _collected(failures):
            remove_folder(self.folder)
        if failures:
            raise LabError("; ".join(map(str, failures))) from ExceptionGroup("not removed", failures)


def remove_folder(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


@contextmanager
def _collected(failures: list[Exception]) -> Iterator[None]:
    try:
        yield
    except (OSError, RematchError) as error:
        failures.append(error)


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

    @property
    def traces(self) -> Traces:
        return Traces(Addresses(self.slot), tuple(map(self.group, self.nodes)), Path(self.folder))


def group_name(slot: int, node: str) -> str:
    return f"rematch{slot}-{node}"


@asynccontextmanager
async def claimed_slot(
    root: Path,
    nodes: tuple[str, ...],
    *,
    for_people: bool = False,
    progress: Progress = to_stderr,
    claims: Path = CLAIMS,
) -> AsyncIterator[Claim]:
    """A free slot, swept; its traces are removed at the end, too."""
    await sweep(progress, claims)
    for slot, path in _slots(claims):
        with _held(path) as ours:
            if not ours:
                progress(f"another lab runs (slot {slot}); this one takes the next free slot")
            if not ours or path.stat().st_size:
                continue
            claim = Claim(slot, str(root / f"lab{slot}"), nodes, _ourselves(), for_people)
            if found := await claim.traces.found():
                progress(f"lab {slot} is left out: {found[0]} is there, and no lab has made it")
                continue
            path.write_bytes(msgspec.json.encode(claim))
            try:
                remove_folder(Path(claim.folder))
                os.makedirs(claim.folder)
                yield claim
            finally:
                await claim.traces.remove()
                path.write_text("")
            return
    raise LabError(f"none of the {SLOTS} labs of this machine is free")


async def sweep(progress: Progress = to_stderr, claims: Path = CLAIMS) -> list[Claim]:
    """Removes what labs left behind whose process is gone; returns their claims.

    What cannot be removed is said and stays claimed, so that nobody starts a lab there and the next one tries again.
    """
    found = []
    for slot, path in _slots(claims):
        with _held(path) as ours:
            try:
                claim = _read(path) if ours else None
                if claim is not None:
                    await claim.traces.remove()
                    path.write_text("")
                    found.append(claim)
            except LabError as error:
                progress(f"lab {slot} is left out, what it left behind could not be removed: {error}")
    return found


def living(progress: Progress = to_stderr, claims: Path = CLAIMS) -> list[Claim]:
    """Labs whose process runs."""
    found = []
    for slot, path in _slots(claims):
        with _held(path) as ours:
            try:
                if not ours and (claim := _read(path)) is not None:
                    found.append(claim)
            except LabError as error:
                progress(f"lab {slot} runs, but nobody knows what it is: {error}")
    return found


def is_living(claim: Claim, claims: Path = CLAIMS) -> bool:
    with _held(claims / str(claim.slot)) as ours:
        return not ours


def _ourselves() -> Identity:
    owner = identity_of(os.getpid())
    assert owner is not None
    return owner


def _slots(claims: Path) -> Iterator[tuple[int, Path]]:
    claims.mkdir(exist_ok=True)
    for slot in range(SLOTS):
        yield slot, claims / str(slot)


@contextmanager
def _held(path: Path) -> Iterator[bool]:
    """Whether it is ours within the block; not when another process holds it."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _read(path: Path) -> Claim | None:
    """None when it is not claimed."""
    text = path.read_bytes()
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=Claim)
    except msgspec.MsgspecError as error:
        raise LabError(f"{path} is no claim ({error}); delete it once nothing of that lab is left") from error
