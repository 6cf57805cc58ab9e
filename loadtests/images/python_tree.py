"""The files that a Python program needs to run on its own: interpreter, libraries, packages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from loadtests.images.archive import File
from loadtests.tools.processes import run
from reactor.errors import RematchError

HOME = "/opt/python"
PACKAGES = "/opt/packages"
_LEFT_OUT = {"__pycache__", "test", "tests", "idlelib", "ensurepip", "lib2to3", "turtledemo", "site-packages"}
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")
_LDD_SECONDS = 120.0


def interpreter() -> Iterator[File]:
    base = Path(sys.base_prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    yield File(f"{HOME}/bin/python3", Path(sys.executable).resolve())
    library = Path(sys.base_prefix) / sys.platlibdir / version
    for source in _kept(library):
        yield File(f"{HOME}/{sys.platlibdir}/{version}/{source.relative_to(library)}", source)
    for source in sorted((base / sys.platlibdir).glob("libpython*.so.*")):
        yield File(f"{HOME}/{sys.platlibdir}/{source.name}", source.resolve())


def packages(lock: Path) -> Iterator[File]:
    """What a lock file lists for this interpreter, as installed here."""
    for requirement in locked(lock):
        for part in _installed(requirement, lock).files or ():
            source = Path(str(part.locate()))
            if ".." not in part.parts and not _LEFT_OUT & set(part.parts) and source.is_file():
                yield File(f"{PACKAGES}/{part}", source)


def sources(folder: Path, names: Iterable[str]) -> Iterator[File]:
    """Our own packages, from the clone."""
    for name in names:
        for source in _kept(folder / name):
            yield File(f"{PACKAGES}/{source.relative_to(folder)}", source)


async def shared_libraries(files: Iterable[File]) -> list[File]:
    """What the system's loader finds for these files; a package's own libraries lie beside it already."""
    binaries = [str(file.source) for file in files if _is_binary(file.source)]
    text = await run(["sh", "-c", 'ldd "$@" 2>/dev/null; true', "ldd", *binaries], deadline=_LDD_SECONDS)
    found = {Path(match) for match in _LIBRARY.findall(text)}
    ours = (Path(sys.prefix), Path(sys.base_prefix))
    return [File(str(path), path.resolve()) for path in sorted(found) if not any(map(path.is_relative_to, ours))]


def locked(lock: Path) -> list[Requirement]:
    """The requirements of a lock file that apply to this interpreter; hashes and comments are indented."""
    lines = [line for line in lock.read_text().splitlines() if line and not line.startswith((" ", "#"))]
    found = [Requirement(line.removesuffix("\\")) for line in lines]
    return [each for each in found if each.marker is None or each.marker.evaluate()]


def _installed(wanted: Requirement, lock: Path) -> Distribution:
    try:
        found = distribution(wanted.name)
    except PackageNotFoundError as error:
        raise RematchError(f"{lock.name} lists {wanted}, which is not installed here: run make setup") from error
    if found.version not in wanted.specifier:
        raise RematchError(f"{lock.name} lists {wanted}, here is {found.version}: run make setup")
    return found


def _kept(folder: Path) -> Iterator[Path]:
    for source in sorted(folder.rglob("*")):
        if source.is_file() and not _LEFT_OUT & set(source.relative_to(folder).parts):
            yield source


def _is_binary(source: Path) -> bool:
    with source.open("rb") as content:
        return content.read(4) == b"\x7fELF"
