"""One real control plane, with our custom resources, for all tests of a session that ask for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from loadtests.controlplane import ControlPlane, ControlPlaneOptions, control_plane, install_crds


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real_plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlPlane]:
    async with control_plane(ControlPlaneOptions(tmp_path_factory.mktemp("control-plane"))) as plane:
        api = plane.client()
        try:
            await install_crds(api)
        finally:
            await api.close()
        yield plane
