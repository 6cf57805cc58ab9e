"""One real node: containerd and a kubelet in namespaces of their own, their pods under one CPU quota.

Process 1 of the node does nothing but hold the namespaces and bury orphans; when it ends, everything of the node ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from loadtests.controlplane.process import ComponentProcess
from loadtests.images.build import AppImages
from loadtests.nodes.cgroups import SYSTEM, Cgroups
from loadtests.nodes.node_files import READ_ONLY_PORT, KubeletPace, NodePlace, mount_script, write_node_files
from loadtests.nodes.spec import SYSTEM_MILLICORES, LabError, LabNodeSpec
from loadtests.tools.processes import CommandFailed, run

_NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")
_JOIN = 'for group in $1; do echo $$ > "$group/cgroup.procs"; done; shift; exec "$@"'
_START_SECONDS = 30.0
_IMPORT_SECONDS = 180.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Programs:
    kubelet: Path
    containerd: Path
    ctr: Path
    network_plugins: Path
    images: AppImages


@dataclass(slots=True)
class Node:
    """Started by `boot`, then `run`; `kill` is what a power cut does."""

    spec: LabNodeSpec
    number: int
    place: NodePlace
    group: str
    cgroups: Cgroups
    programs: Programs
    kubeconfig: Path
    pace: KubeletPace
    _first: ComponentProcess | None = field(default=None)
    _containerd: ComponentProcess | None = field(default=None)
    _kubelet: ComponentProcess | None = field(default=None)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def address(self) -> str:
        return self.place.address

    @property
    def metrics(self) -> str:
        return f"{self.address}:{READ_ONLY_PORT}"

    @property
    def up(self) -> bool:
        return self._first is not None

    @property
    def pid(self) -> int:
        """Of process 1, as the machine counts."""
        return _child(self._first)

    async def boot(self) -> None:
        """Namespaces and control groups; the network is connected from outside before `run`."""
        write_node_files(self.place, self.spec, self.pace, self.programs.network_plugins)
        self.cgroups.make(self.group)
        unshare = ["unshare", *_NAMESPACES, "--fork", "--kill-child=SIGKILL", "--mount-proc"]
        first = [*unshare, str(self.programs.images.binary), "pause"]
        self._first = self._process("init", self._joined("", first))
        self._first.start()
        await self._until(self._first_runs, "its first process")
        self.cgroups.divide(self.group, self.spec.millicores, self.spec.memory_mib)
        await self.enter("sh", "-c", mount_script(self.place.folder, self.name, self.cgroups))

    async def run(self) -> None:
        config = str(self.place.folder / "containerd.toml")
        self._containerd = self._inside("containerd", str(self.programs.containerd), "--config", config)
        self._containerd.start()
        await self._until(self._containerd_answers, "containerd")
        for archive in self.programs.images.archives:
            await self.import_image(archive)
        self.start_kubelet()

    async def import_image(self, archive: Path) -> None:
        await self.enter(str(self.programs.ctr), "-n", "k8s.io", "images", "import", str(archive))

    def start_kubelet(self) -> None:
        self._kubelet = self._inside(
            "kubelet",
            str(self.programs.kubelet),
            f"--config={self.place.folder / 'kubelet.yaml'}",
            f"--kubeconfig={self.kubeconfig}",
            f"--node-ip={self.address}",
            f"--hostname-override={self.name}",
            f"--node-labels=lab/cpu={self.spec.millicores + SYSTEM_MILLICORES}m",
            f"--housekeeping-interval={self.pace.housekeeping:g}s",
        )
        self._kubelet.start()

    def restart_kubelet(self) -> None:
        """Killed and started again, as an update does; containers go on."""
        os.kill(_child(self._kubelet), signal.SIGKILL)
        if self._kubelet is not None:
            self._kubelet.stop()
        self.start_kubelet()

    async def enter(self, *command: str) -> str:
        """A command inside the node, to its end."""
        return await run(self._joined(SYSTEM, self._entering(command)), deadline=_IMPORT_SECONDS)

    def kill(self) -> None:
        """All at once. What is left of its control groups goes, too, so that the node can be booted again."""
        for process in (self._first, self._kubelet, self._containerd):
            if process is not None:
                process.stop()
        self._first = self._kubelet = self._containerd = None
        self.cgroups.end(self.group)

    def check(self) -> None:
        for process in (self._first, self._containerd, self._kubelet):
            if process is not None:
                process.check()

    async def _until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        try:
            async with asyncio.timeout(_START_SECONDS):
                while not await holds():
                    self.check()
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError as error:
            raise LabError(f"{self.name}: {what} did not come up within {_START_SECONDS:g} s") from error

    async def _first_runs(self) -> bool:
        """It has become the program: before that it is still entering its namespaces."""
        children = _children(self._first)
        return bool(children) and _command_of(children[0]) == "apps"

    async def _containerd_answers(self) -> bool:
        try:
            await self.enter(str(self.programs.ctr), "version")
        except CommandFailed:
            return False
        return True

    def _inside(self, name: str, *command: str) -> ComponentProcess:
        return self._process(name, self._joined(SYSTEM, self._entering(command)))

    def _entering(self, command: tuple[str, ...]) -> list[str]:
        return ["nsenter", "--target", str(self.pid), *_NAMESPACES, "--", *command]

    def _joined(self, part: str, command: list[str]) -> list[str]:
        """A new process is where its parent is: it has to join the node's groups before it becomes the program."""
        groups = " ".join(str(group / part) for group in self.cgroups.groups(self.group))
        return ["sh", "-c", _JOIN, "sh", groups, *command]

    def _process(self, name: str, command: list[str]) -> ComponentProcess:
        return ComponentProcess(f"{name} of {self.name}", command, self.place.log / f"{name}.log")


def _children(process: ComponentProcess | None) -> list[int]:
    identity = process.identity if process is not None else None
    if identity is None:
        return []
    try:
        text = Path(f"/proc/{identity.pid}/task/{identity.pid}/children").read_text()
    except OSError:
        return []
    return [int(pid) for pid in text.split()]


def _command_of(pid: int) -> str:
    """Empty when it has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _child(process: ComponentProcess | None) -> int:
    children = _children(process)
    if not children:
        raise LabError("the node does not run")
    return children[0]
