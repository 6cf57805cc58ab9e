"""What a lab makes on the machine outside its own process: control groups, network, a control plane, files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loadtests.controlplane.leftovers import remove_leftovers
from loadtests.nodes.addresses import Addresses
from loadtests.nodes.cgroups import Cgroups
from loadtests.nodes.errors import LabError
from loadtests.nodes.network import network_traces, remove_network
from reactor.errors import RematchError


def control_plane_folder(folder: Path) -> Path:
    return folder / "control-plane"


@dataclass(frozen=True, slots=True)
class Traces:
    addresses: Addresses
    groups: tuple[str, ...]
    folder: Path

    async def found(self) -> list[str]:
        """Groups, links and routes that are there. When no lab has made them they are somebody else's."""
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
