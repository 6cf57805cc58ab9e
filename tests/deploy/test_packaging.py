"""The controller's wheel and image have what they need, and nothing of the lab or of development."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from email.message import Message
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from reactor.cli import main as cli
from tests.support.command import command

ROOT = Path(__file__).parents[2]
OURS = ("matching", "predictors", "storage", "reactor")
NOT_IN_THE_LAB = ("benchmarks", "chaos", "same_plans")
_BUILD_SECONDS = 50.0

Build = Callable[[Path], ZipFile]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Build]:
    opened = []

    def built(project: Path) -> ZipFile:
        folder = tmp_path_factory.mktemp("wheel")
        tool = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(tool, cwd=project, check=True, timeout=_BUILD_SECONDS, capture_output=True)
        (wheel,) = folder.glob("*.whl")
        opened.append(ZipFile(wheel))
        return opened[-1]

    yield built
    for archive in opened:
        archive.close()


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())


def requirements(lines: Iterable[str]) -> dict[str, Requirement]:
    return {canonicalize_name(found.name): found for found in map(Requirement, lines)}


def declared(folder: Path, *extras: str) -> dict[str, Requirement]:
    table = project(folder)["project"]
    return requirements(
        [*table["dependencies"], *(line for each in extras for line in table["optional-dependencies"][each])]
    )


def pins(lock: str) -> dict[str, list[tuple[str, str]]]:
    """By name: version and marker; a universal lock has several versions of some packages."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in re.findall(r"^(\w.*?) *\\$", (ROOT / lock).read_text(), re.MULTILINE):
        requirement = Requirement(line)
        (pin,) = requirement.specifier
        assert pin.operator == "=="
        found.setdefault(canonicalize_name(requirement.name), []).append((pin.version, str(requirement.marker)))
    return found


def tops(wheel: ZipFile) -> set[str]:
    return {name.partition("/")[0] for name in wheel.namelist() if ".dist-info/" not in name}


def metadata(wheel: ZipFile) -> Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


def always_needed(wheel: ZipFile) -> dict[str, Requirement]:
    needed = requirements(metadata(wheel).get_all("Requires-Dist", []))
    return {name: each for name, each in needed.items() if each.marker is None}


def test_the_wheel_has_the_controller_and_not_the_lab(build: Build) -> None:
    wheel = build(ROOT)
    assert tops(wheel) == set(OURS)
    assert not {"rematch-lab", "pytest", "playwright", "mypy", "matplotlib", "hatchling"} & always_needed(wheel).keys()
    (entry_points,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "loadtests" not in wheel.read(entry_points).decode()


def test_the_extra_lab_brings_the_lab_of_the_same_version(build: Build) -> None:
    wheel = build(ROOT / "loadtests")
    assert tops(wheel) == {"loadtests"}
    names = wheel.namelist()
    assert {"loadtests/commands.py", "loadtests/images/apps/main.go", "loadtests/workloads/scripts/load.js"} <= set(
        names
    )
    assert not [name for name in names if name.split("/")[1] in (*NOT_IN_THE_LAB, "pyproject.toml")]
    version = project(ROOT)["project"]["version"]
    assert metadata(wheel)["Version"] == version
    assert str(always_needed(wheel)["rematch"].specifier) == f"=={version}"
    assert project(ROOT)["project"]["optional-dependencies"]["lab"] == [f"rematch-lab=={version}"]


def imported(folder: Path, left_out: Iterable[str] = ()) -> dict[str, Path]:
    """The top-level packages that are imported anywhere, inside functions too, and one file that does."""
    found: dict[str, Path] = {}
    skipped = [folder / name for name in left_out]
    for path in folder.rglob("*.py"):
        if any(map(path.is_relative_to, skipped)):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0]: path for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found[node.module.partition(".")[0]] = path
    return {name: path for name, path in found.items() if name not in sys.stdlib_module_names}


@pytest.mark.parametrize("package", [*OURS, "loadtests"])
def test_what_is_imported_is_declared(package: str) -> None:
    needed = declared(ROOT / "loadtests") if package == "loadtests" else declared(ROOT, "fast", "postgresql")
    distributions = packages_distributions()
    for name, path in imported(ROOT / package, NOT_IN_THE_LAB).items():
        if name not in (*OURS, "loadtests"):
            provided_by = {canonicalize_name(each) for each in distributions[name]}
            assert provided_by & needed.keys(), f"{path.relative_to(ROOT)} imports {name}, which is not declared"


@pytest.mark.parametrize(
    ("lock", "needed"),
    [
        ("requirements.lock", declared(ROOT, "dev", "fast") | declared(ROOT / "loadtests")),
        ("requirements-runtime.lock", declared(ROOT, "fast", "postgresql")),
        ("requirements-build.lock", requirements(project(ROOT)["build-system"]["requires"])),
    ],
)
def test_the_locks_have_what_is_declared_with_hashes(lock: str, needed: dict[str, Requirement]) -> None:
    found = pins(lock)
    for name, requirement in needed.items():
        if name != "rematch":
            assert name in found, f"{name} is not in {lock}: run make lock"
            assert all(requirement.specifier.contains(version) for version, _ in found[name]), f"{lock}: run make lock"
    text = (ROOT / lock).read_text()
    assert len(re.findall(r"^\w.*\\\n    --hash=sha256:", text, re.MULTILINE)) == sum(map(len, found.values()))


@pytest.mark.parametrize("lock", ["requirements-runtime.lock", "requirements-build.lock"])
def test_what_is_shipped_has_the_versions_that_are_tested(lock: str) -> None:
    tested = pins("requirements.lock")
    for name, found in pins(lock).items():
        versions = {version for version, _ in found}
        assert versions <= {version for version, _ in tested[name]}, f"{name} differs in {lock}: run make lock"


def test_the_runtime_lock_has_nothing_of_development_or_the_lab() -> None:
    in_the_image = declared(ROOT, "fast").keys() | declared(ROOT, "postgresql").keys()
    only_for_development = declared(ROOT, "dev").keys() - in_the_image
    assert not pins("requirements-runtime.lock").keys() & {*only_for_development, "rematch-lab"}


def test_the_build_lock_is_made_from_what_the_build_requires() -> None:
    for folder in (ROOT, ROOT / "loadtests"):
        assert project(folder)["build-system"]["requires"] == project(ROOT)["dependency-groups"]["build"]


def test_the_image_installs_the_locked_runtime_on_one_base() -> None:
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("ARG")] == ["ARG BASE=python:3.11-slim"]
    assert {line.split()[1] for line in lines if line.startswith("FROM")} == {"${BASE}"}
    installs = [line for line in lines if " install " in line]
    assert all("--require-hashes -r requirements-" in line or "--no-index" in line for line in installs)
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY req")]
    assert copied == [["requirements-build.lock", "requirements-runtime.lock"]]
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {"loadtests", "tests", ".git", ".venv"} <= set(ignored)
    assert not set(OURS) & set(ignored)


@pytest.mark.parametrize("name", ["demo", "lab"])
def test_without_the_lab_its_commands_say_how_to_get_it(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "entry_points", lambda **_: ())
    run = command(monkeypatch, capsys)
    result = run(name, "--help")
    assert result.code == 1
    assert "pip install 'rematch[lab]'" in result.err
    help_text = run("--help")
    assert help_text.code == 0
    assert not re.search(rf"^  {name} ", help_text.out, re.MULTILINE)
