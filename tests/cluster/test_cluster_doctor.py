"""`rematch doctor` on a real control plane: what it says about rights is what the API server would answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from reactor.cli.doctor.examination import examine
from reactor.cli.doctor.findings import Finding, State
from reactor.clock import SystemClock
from reactor.cluster.connection import open_connection
from reactor.cluster.rights import INSTALL
from tests.support.account import Account

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


async def found_by(kubeconfig: Path) -> dict[str, Finding]:
    connection = await open_connection(str(kubeconfig))
    try:
        report = await examine(connection, connection.server, "rematch", SystemClock())
    finally:
        await connection.close()
    return {finding.check: finding for finding in report.findings}


@pytest.mark.parametrize("admin", [True, False], ids=["as admin", "as the controller"])
async def test_all_rights_of_the_manifests_are_found(account: Account, admin: bool) -> None:
    found = await found_by(account.plane.kubeconfig if admin else account.kubeconfig)
    assert found["rights"].state is State.OK, found["rights"].text
    assert found["Kubernetes"].state is State.OK
    assert found["settings"].text.startswith("valid: mode act")
    assert found["controller"].state is (State.FAILED if admin else State.UNKNOWN)


async def test_a_missing_right_is_named_with_what_it_is_for(account: Account) -> None:
    await account.without("", "pods/eviction", "create")
    found = (await found_by(account.plane.kubeconfig))["rights"]
    assert found.state is State.FAILED
    assert "lacks 1 of" in found.text
    assert "create pods/eviction (moves: the pod leaves its node)" in found.text
    assert found.mend == INSTALL
