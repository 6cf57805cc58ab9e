"""The controller as its service account on a real control plane, with lab kubelets as nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from loadtests.controlplane import ControlPlane, serve_metrics
from tests.support.account import Account, open_account
from tests.support.real_shop import RealShop, open_real_shop


@pytest.fixture
async def account(real_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Account]:
    async with open_account(real_plane, tmp_path) as opened:
        yield opened


@pytest.fixture
async def shop(real_plane: ControlPlane) -> AsyncIterator[RealShop]:
    """web and db crowd n1, n2 is idle."""
    async with open_real_shop(real_plane) as opened, serve_metrics(real_plane, opened):
        await opened.open("web", "n1")
        await opened.open("db", "n1")
        yield opened
