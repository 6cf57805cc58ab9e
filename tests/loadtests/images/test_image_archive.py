"""Images without Docker: what containerd will find in the archive."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from loadtests.images import build
from loadtests.images.archive import File, Image, write_image, write_layer
from loadtests.images.build import CONTROLLER_IMAGE, RUNTIME_LOCK
from loadtests.images.python_tree import HOME, PACKAGES, interpreter, packages
from loadtests.nodes.in_cluster import manifests
from loadtests.tools.cache import Cache
from reactor.errors import RematchError

LOCK = Path(__file__).parents[3] / RUNTIME_LOCK


def layer_of(folder: Path, name: str = "layer.tar") -> Path:
    program = folder / "program"
    program.write_bytes(b"binary")
    program.chmod(0o755)
    (folder / "data").write_text("text")
    files = [File("/opt/app/program", program), File("/opt/app/data", folder / "data")]
    return write_layer(folder / name, files).tar


def test_a_layer_has_its_folders_and_modes_and_is_the_same_every_time(tmp_path: Path) -> None:
    first, second = layer_of(tmp_path, "a.tar"), layer_of(tmp_path, "b.tar")
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        entries = {entry.name: entry for entry in archive}
    assert list(entries) == ["opt", "opt/app", "opt/app/data", "opt/app/program"]
    assert entries["opt/app/program"].mode == 0o755
    assert entries["opt/app/data"].mode == 0o644
    assert {entry.uid for entry in entries.values()} == {0}


def test_every_blob_is_called_by_its_digest(tmp_path: Path) -> None:
    layer = write_layer(tmp_path / "layer.tar", [File("/app", tmp_path.joinpath("x")) for _ in range(0)])
    path = write_image(tmp_path / "image.tar", Image("lab.local/x:1", (layer,), ("/app",), environment={"A": "b"}))
    with tarfile.open(path) as archive:
        blobs = {}
        for entry in archive:
            content = archive.extractfile(entry)
            assert content is not None
            blobs[entry.name] = content.read()
    index = json.loads(blobs["index.json"])
    (named,) = index["manifests"]
    assert named["annotations"]["io.containerd.image.name"] == "lab.local/x:1"
    for name, blob in blobs.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}"
    manifest = json.loads(blobs[_blob(named["digest"])])
    config = json.loads(blobs[_blob(manifest["config"]["digest"])])
    assert config["rootfs"]["diff_ids"] == [each["digest"] for each in manifest["layers"]]
    assert config["config"]["Env"] == ["A=b"]
    assert config["config"]["User"] == "65532"


def test_the_controllers_image_has_what_it_needs_and_nothing_of_development() -> None:
    paths = {file.path for file in packages(LOCK)}
    tops = {path.removeprefix(f"{PACKAGES}/").partition("/")[0] for path in paths}
    assert {"aiohttp", "kubernetes", "sqlalchemy", "numpy", "numba"} <= tops
    assert not {"pytest", "mypy", "ruff", "playwright", "matplotlib", "loadtests"} & tops
    assert f"{HOME}/bin/python3" in {file.path for file in interpreter()}


@pytest.mark.parametrize(
    ("line", "problem"),
    [("no-such-package==1.0", "is not installed here: run make setup"), ("numpy==0.1", "here is .*: run make setup")],
)
def test_an_environment_that_is_not_as_locked_makes_no_image(tmp_path: Path, line: str, problem: str) -> None:
    lock = tmp_path / "requirements-runtime.lock"
    lock.write_text(f"{line} \\\n    --hash=sha256:00\n")
    with pytest.raises(RematchError, match=problem):
        list(packages(lock))


def test_the_image_is_called_as_the_deployment_asks_for_it() -> None:
    (pod,) = [each["spec"]["template"]["spec"] for each in manifests() if each["kind"] == "Deployment"]
    assert f"docker.io/library/{pod['containers'][0]['image']}" == CONTROLLER_IMAGE


async def test_only_the_newest_image_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def pack_nothing(tar: Path, _lock: Path) -> None:
        write_layer(tar, [])

    monkeypatch.setattr(build, "_pack_dependencies", pack_nothing)
    (tmp_path / RUNTIME_LOCK).write_text("")
    source = tmp_path / "reactor" / "loop.py"
    source.parent.mkdir()
    built = []
    for text in ("before", "after", "after"):
        source.write_text(text)
        built.append(await build.controller_image(tmp_path, Cache(tmp_path / "cache"), print))
    assert built[0] != built[1] == built[2]
    assert list(built[2].parent.glob("rematch-*.tar")) == [built[2]]


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
