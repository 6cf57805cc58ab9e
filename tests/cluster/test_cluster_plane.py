"""The control plane itself: who is let in, what a restart leaves, and how a failure is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadtests.controlplane import Component, ControlPlane, ControlPlaneOptions, User, control_plane
from reactor.errors import ClusterError, Refused

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


async def test_a_component_that_does_not_come_up_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    options = ControlPlaneOptions(tmp_path, flags={Component.API_SERVER: ("--no-such-flag",)})
    with pytest.raises(ClusterError, match=r"(?s)kube-apiserver ended: .*unknown flag: --no-such-flag"):
        async with control_plane(options):
            pass
    assert (tmp_path / "log" / "etcd.log").exists()


async def test_what_was_written_survives_a_restart_of_every_component(tmp_path: Path) -> None:
    node = User("node-token", "system:node:n1", ("system:nodes",))
    async with control_plane(ControlPlaneOptions(tmp_path, users=(node,))) as plane:
        api, other = plane.client(), plane.client(token="node-token")
        try:
            await api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})
            for component in Component:
                await plane.restart(component)
            found = await api.get("/api/v1/namespaces/default/configmaps/kept")
            assert found["metadata"]["name"] == "kept"
            with pytest.raises(Refused, match='User \\\\"system:node:n1\\\\" cannot list resource'):
                await other.get("/api/v1/secrets")
        finally:
            await api.close()
            await other.close()


async def test_a_token_of_an_account_without_rights_is_known_but_may_nothing(real_plane: ControlPlane) -> None:
    api = real_plane.client(token=await real_plane.token("default", "default"))
    try:
        with pytest.raises(Refused, match="system:serviceaccount:default:default"):
            await api.get("/api/v1/nodes")
    finally:
        await api.close()
