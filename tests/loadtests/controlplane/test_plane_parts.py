"""The parts of a control plane that can be tried without one."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from loadtests.controlplane.credentials import Credentials, Pair, write_kubeconfig, write_tokens
from loadtests.controlplane.flags import Layout, Ports
from loadtests.controlplane.options import Component, ControlPlaneOptions, User
from loadtests.controlplane.plane import ControlPlane, control_plane
from loadtests.controlplane.process import (
    ComponentProcess,
    Identity,
    check_folder,
    identity_of,
    remember,
    remove_leftovers,
)
from loadtests.tools.ports import free_ports
from loadtests.tools.state_folder import claimed
from reactor.errors import ClusterError, InputError
from tests.support.clock import eventually

PAIR = Pair(Path("a.crt"), Path("a.key"))
CREDENTIALS = Credentials("secret", Path("tokens"), PAIR, PAIR, PAIR, PAIR, PAIR, Path("s.key"), Path("s.pub"))


def layout(options: ControlPlaneOptions) -> Layout:
    return Layout(options, Ports(1, 2, 3, 4, 5), CREDENTIALS, Path("data"), Path("kubeconfig"))


def test_rbac_is_on_and_nobody_is_let_in_without_a_credential() -> None:
    flags = layout(ControlPlaneOptions(Path("x"))).flags(Component.API_SERVER)
    assert "--authorization-mode=Node,RBAC" in flags
    assert "--token-auth-file=tokens" in flags


@pytest.mark.parametrize(("address", "expected"), [("127.0.0.1", True), ("10.250.0.1", False)])
def test_only_a_loopback_address_is_kept_out_of_the_endpoints(address: str, expected: bool) -> None:
    flags = layout(ControlPlaneOptions(Path("x"), address=address)).flags(Component.API_SERVER)
    assert ("--endpoint-reconciler-type=none" in flags) is expected


def test_flags_of_the_caller_come_last_and_limits_reach_both_clients() -> None:
    options = ControlPlaneOptions(Path("x"), client_qps=500, flags={Component.SCHEDULER: ("--v=4",)})
    assert layout(options).flags(Component.SCHEDULER)[-1] == "--v=4"
    for component in (Component.SCHEDULER, Component.CONTROLLER_MANAGER):
        assert {"--kube-api-qps=500", "--kube-api-burst=1000"} <= set(layout(options).flags(component))


def test_users_are_written_with_their_groups_for_the_owner_only(tmp_path: Path) -> None:
    users = [User("t1", "system:node:n1", ("system:nodes",)), User("t2", "eve", ("a", "b"))]
    path = write_tokens(tmp_path / "tokens.csv", users)
    assert path.read_text() == 't1,system:node:n1,system:node:n1,"system:nodes"\nt2,eve,eve,"a,b"\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_ports_differ_and_are_below_those_of_outgoing_connections() -> None:
    ports = free_ports("127.0.0.1", 5)
    assert len(set(ports)) == 5
    assert max(ports) < 32_768


def test_a_kubeconfig_holds_the_token_or_names_its_file(tmp_path: Path) -> None:
    fixed = write_kubeconfig(tmp_path / "a", "https://127.0.0.1:1", Path("ca.crt"), token="t")
    moving = write_kubeconfig(tmp_path / "b", "https://127.0.0.1:1", Path("ca.crt"), token_file=tmp_path / "token")
    assert yaml.safe_load(fixed.read_text())["users"][0]["user"] == {"token": "t"}
    assert yaml.safe_load(moving.read_text())["users"][0]["user"] == {"tokenFile": str(tmp_path / "token")}
    assert fixed.stat().st_mode & 0o777 == 0o600


async def test_a_component_that_ends_is_reported_with_its_last_words(tmp_path: Path) -> None:
    process = ComponentProcess("etcd", ["sh", "-c", "echo no space left >&2; exit 3"], tmp_path / "etcd.log")
    process.start()
    identity = process.identity
    assert identity is not None
    await eventually(lambda: not _alive(identity.pid))
    with pytest.raises(ClusterError, match=r"(?s)etcd ended: .*no space left"):
        process.check()
    process.stop()


def test_a_component_is_killed_and_its_log_stays(tmp_path: Path) -> None:
    process = ComponentProcess("etcd", ["sleep", "60"], tmp_path / "etcd.log")
    process.start()
    identity = process.identity
    assert identity is not None
    process.stop()
    assert identity_of(identity.pid) is None
    assert (tmp_path / "etcd.log").exists()


async def test_a_component_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = f"""
import time
from pathlib import Path
from loadtests.controlplane.process import ComponentProcess
process = ComponentProcess("etcd", ["sleep", "60"], Path({str(tmp_path / "log")!r}))
process.start()
print(process.identity.pid, flush=True)
time.sleep(60)
"""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    await eventually(lambda: Path(f"/proc/{child}/comm").read_text() == "sleep\n")
    assert _alive(child)
    parent.kill()
    await parent.wait()
    await eventually(lambda: not _alive(child))


def test_what_an_earlier_run_left_is_ended_and_removed(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as left, subprocess.Popen(["sleep", "60"]) as stranger:
        found = identity_of(left.pid)
        assert found is not None
        other = identity_of(stranger.pid)
        assert other is not None
        before_the_reboot = msgspec.structs.replace(other, boot="another")
        remember(tmp_path, [found, Identity(stranger.pid, 1, found.boot), before_the_reboot])
        (tmp_path / "etcd").mkdir()
        (tmp_path / "mine").mkdir()
        (tmp_path / "kubeconfig").touch()
        remove_leftovers(tmp_path, ["etcd", "kubeconfig", "pki"])
        assert left.wait(10) == -signal.SIGKILL
        assert stranger.poll() is None
        stranger.kill()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "processes.json"]


@pytest.mark.parametrize("record", [None, "{}"])
def test_what_no_run_of_ours_made_is_not_removed(tmp_path: Path, record: str | None) -> None:
    (tmp_path / "log").mkdir()
    if record is not None:
        (tmp_path / "processes.json").write_text(record)
    with pytest.raises(InputError, match="log would be overwritten; name another folder"):
        remove_leftovers(tmp_path, ["etcd", "log", "pki"])
    assert (tmp_path / "log").exists()


@pytest.mark.parametrize("record", [None, "{}"])
async def test_a_folder_with_files_of_others_is_refused_before_anything_is_made_there(
    tmp_path: Path, record: str | None
) -> None:
    (tmp_path / "passwd").touch()
    if record is not None:
        (tmp_path / "processes.json").write_text(record)
    before = _names(tmp_path)
    with pytest.raises(InputError, match=f"--state {tmp_path}: not empty.*name a folder that is new or empty"):
        async with control_plane(ControlPlaneOptions(tmp_path)):
            pass
    assert _names(tmp_path) == before


def test_a_folder_that_is_new_empty_or_ours_is_taken(tmp_path: Path) -> None:
    check_folder(tmp_path / "new")
    check_folder(tmp_path)
    remember(tmp_path, [])
    (tmp_path / "lock").touch()
    check_folder(tmp_path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be used: Not a directory"):
        check_folder(tmp_path / "file")


def test_one_run_per_folder(tmp_path: Path) -> None:
    with claimed(tmp_path), pytest.raises(InputError, match=f"uses {tmp_path}; end it"), claimed(tmp_path):
        pass
    with (
        claimed(tmp_path),
        pytest.raises(InputError, match="end it, or run elsewhere"),
        claimed(tmp_path, "run elsewhere"),
    ):
        pass
    with claimed(tmp_path):
        assert (tmp_path / "lock").exists()


class _Stuck(ComponentProcess):
    def stop(self) -> None:
        raise ClusterError("stuck")


def test_one_that_does_not_end_keeps_nobody_else_running(tmp_path: Path) -> None:
    stuck = _Stuck("kube-scheduler", ["sleep", "60"], tmp_path / "stuck.log")
    other = ComponentProcess("etcd", ["sleep", "60"], tmp_path / "other.log")
    other.start()
    plane = ControlPlane(layout(ControlPlaneOptions(tmp_path)), {Component.ETCD: other, Component.SCHEDULER: stuck})
    with pytest.raises(ClusterError, match="stuck"):
        plane.stop()
    assert other.identity is None


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _alive(pid: int) -> bool:
    """A zombie is dead; whoever inherited it has not noticed yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
