"""Finding: what is on the PATH and suitable is kept, everything else is named in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from loadtests.commands import lab
from loadtests.tools import Found, Group, Missing, ToolMissing, building, ensure, names, survey
from loadtests.tools.cache import Cache
from loadtests.tools.catalogue import CATALOGUE, first_version, is_suitable

Put = Callable[[str, str], Path]


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ("Kubernetes v1.36.3", "1.36.3"),
        ("etcd Version: 3.7.3\nGit SHA: Not provided\nGo Version: go1.26.8", "3.7.3"),
        ("kwok version v0.8.0 go1.26.8 (linux/amd64)", "0.8.0"),
        ("k6 v1.8.1 (go1.26.8, linux/amd64)", "1.8.1"),
        ("Version: \nRuntime: go1.26.8 linux/amd64", None),
        ("Descheduler version {Major:0 Minor:36 GitVersion:v0.36.0 GitBranch: BuildDate:}", "0.36.0"),
        ("prometheus, version 2.42.0+ds (branch: debian/sid, revision: 2.42.0+ds-5)", "2.42.0"),
        ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3", "1.6.20"),
        ("OpenSSL 3.0.19 27 Jan 2026 (Library: OpenSSL 3.0.19 27 Jan 2026)", "3.0.19"),
        ("iptables v1.8.9 (nf_tables)", "1.8.9"),
    ],
)
def test_the_version_is_read_from_a_program_s_own_words(words: str, version: str | None) -> None:
    assert first_version(words) == version


def test_suitable_is_from_the_lowest_to_below_the_limit() -> None:
    limits = ("1.36", "1.37")
    assert [is_suitable(found, limits) for found in ("1.35.9", "1.36", "1.36.12", "1.37.0", None)] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert is_suitable(None, ("", ""))


def test_every_program_belongs_somewhere_and_is_listed_once() -> None:
    assert len({program.name for program in CATALOGUE}) == len(CATALOGUE)
    assert all(program.groups for program in CATALOGUE)
    assert set(names(Group.CLUSTER)) < set(names())
    assert {"etcd", "kube-apiserver", "kube-scheduler"} <= set(names(Group.CLUSTER))


async def test_a_suitable_program_on_the_path_is_kept(cache: Cache, put_on_path: Put) -> None:
    etcd = put_on_path("etcd", "#!/bin/sh\necho 'etcd Version: 3.5.12'\n")
    (state,) = await survey(["etcd"], cache)
    assert isinstance(state, Found)
    assert (state.path, state.version, state.cached) == (etcd, "3.5.12", False)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("#!/bin/sh\necho Kubernetes v1.30.1\n", "1.30.1"),
        ("#!/bin/sh\nexit 1\n", "of unknown version"),
        ("not a program", "of unknown version"),
    ],
)
async def test_another_version_or_a_broken_program_is_not(
    cache: Cache, put_on_path: Put, script: str, told: str
) -> None:
    put_on_path("kube-apiserver", script)
    (state,) = await survey(["kube-apiserver"], cache)
    assert isinstance(state, Missing)
    assert state.unsuitable == told


async def test_without_root_one_line_says_what_to_install(
    cache: Cache, put_on_path: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_on_path("apt-get", "#!/bin/sh\n")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ToolMissing) as missing:
        await ensure(["containerd", "ctr", "runc"], cache=cache)
    assert str(missing.value) == "this needs root: apt-get install --no-install-recommends containerd runc"


async def test_without_a_package_manager_we_know_the_line_names_the_packages(cache: Cache, put_on_path: Put) -> None:
    with pytest.raises(ToolMissing, match=r"^install prometheus with this system's package manager$"):
        await ensure(["prometheus"], cache=cache)


async def test_what_the_package_manager_brought_is_used(
    cache: Cache, put_on_path: Put, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = tmp_path / "bin" / "runc"
    words = f"printf '#!/bin/sh\\necho runc version 1.1.5\\n' > {target}; /bin/chmod 755 {target}"
    put_on_path("apt-get", f'#!/bin/sh\n[ "$1" = install ] && {{ {words}; }}\nexit 0\n')
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert await ensure(["runc"], cache=cache, progress=lambda _: None) == {"runc": target}


@pytest.fixture
def held_apt(put_on_path: Put, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another process holds apt's lock at the first two calls."""
    held, runc = tmp_path / "held", tmp_path / "bin" / "runc"
    held.write_text("once\ntwice\n")
    script = f"""#!/bin/sh
if [ -s {held} ]; then
  /bin/sed -i 1d {held}
  echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)"; exit 100
fi
[ "$1" = install ] && {{ printf '#!/bin/sh\\necho runc version 1.1.5\\n' > {runc}; /bin/chmod 755 {runc}; }}
exit 0
"""
    put_on_path("apt-get", script)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(building, "_LOCK_PAUSE_SECONDS", 0.0)


@pytest.mark.usefixtures("held_apt")
async def test_a_lock_of_apt_is_waited_for(cache: Cache) -> None:
    said: list[str] = []
    assert "runc" in await ensure(["runc"], cache=cache, progress=said.append)
    assert said[1:] == ["another process holds apt's lock: waiting for it, at most 5 min"]


@pytest.mark.usefixtures("held_apt")
async def test_a_lock_of_apt_that_stays_is_an_error_after_the_deadline(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_LOCK_SECONDS", 0.0)
    with pytest.raises(ToolMissing, match=r"Could not get lock .* held by process 1"):
        await ensure(["runc"], cache=cache, progress=lambda _: None)


async def test_what_is_still_missing_after_the_installation_is_an_error(
    cache: Cache, put_on_path: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_on_path("apt-get", "#!/bin/sh\n")
    put_on_path("runc", "#!/bin/sh\necho runc version 0.9.1\n")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(ToolMissing, match=r"runc 1.1 or newer is needed .* 0.9.1"):
        await ensure(["runc"], cache=cache, progress=lambda _: None)


def test_the_cache_is_outside_the_clone_and_can_be_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("REMATCH_TOOLS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Cache.usual().root == tmp_path / "xdg" / "rematch" / "tools"
    monkeypatch.setenv("REMATCH_TOOLS", str(tmp_path / "own"))
    assert Cache.usual().root == tmp_path / "own"


def test_the_command_lists_every_program(put_on_path: Put, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REMATCH_TOOLS", str(tmp_path / "empty"))
    etcd = put_on_path("etcd", "#!/bin/sh\necho etcd Version: 3.6.1\n")
    result = CliRunner().invoke(lab, ["tools", "cluster", "--list", "-o", "json"])
    rows = {row["program"]: row for row in json.loads(result.stdout)}
    assert tuple(rows) == names(Group.CLUSTER)
    assert rows["etcd"] == {"program": "etcd", "version": "3.6.1", "state": "on the PATH", "path": str(etcd)}
    assert rows["kube-apiserver"]["state"] == "missing"
