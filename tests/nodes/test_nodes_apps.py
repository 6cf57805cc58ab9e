"""The lab's apps as real containers: they serve, and they end without losing what they have begun."""

from __future__ import annotations

import asyncio

import pytest

from loadtests.nodes.apps import ITERATIONS_PER_MS, PORT, AppKind, LabApp, ProbeTimes
from loadtests.workloads.http_client import Answer, http_get
from tests.nodes.namespace import LabNamespace

pytestmark = [pytest.mark.nodes, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

PATIENCE = 60.0


async def test_the_apps_of_both_papers_serve(ns: LabNamespace) -> None:
    pool = {"WORKERS": "1", "BACKLOG": "1", "ITERATIONS": str(5 * ITERATIONS_PER_MS)}
    await ns.deploy(LabApp("database", AppKind.DATABASE, environment=pool, probe=ProbeTimes(failures=100)), "node1")
    database = f"http://{await _address(ns, 'database')}:{PORT}/"
    apps = (
        LabApp("web", environment={"ITERATIONS": "1000000"}),
        LabApp("counter", AppKind.COUNTER),
        LabApp("memory", AppKind.MEMORY),
        LabApp("wordpress", AppKind.WORDPRESS, environment={"DATABASE": database}),
    )
    await asyncio.gather(*(ns.deploy(app, "node1") for app in apps))
    answers = [await _get(ns, app.name) for app in apps]
    assert [answer.status for answer in answers] == [200, 200, 200, 200]
    # The pool is shared and bounded: more pages at once than it takes are refused, not queued for ever.
    crowd = await asyncio.gather(*(_get(ns, "wordpress") for _ in range(60)))
    assert {answer.status for answer in crowd} - {200}


async def test_an_app_that_is_told_to_end_finishes_what_it_has_begun(ns: LabNamespace) -> None:
    work = {"ITERATIONS": str(1500 * ITERATIONS_PER_MS), "DRAIN_MS": "500"}
    await ns.deploy(LabApp("ending", environment=work, probe=ProbeTimes(failures=100)), "node1")
    pod = (await ns.pod("ending"))["metadata"]["name"]
    asked = asyncio.create_task(_get(ns, "ending"))
    await asyncio.sleep(0.15)
    await ns.lab.api.delete(f"/api/v1/namespaces/{ns.name}/pods/{pod}", {"gracePeriodSeconds": 30})
    assert not asked.done()
    assert (await asked).status == 200


async def _address(ns: LabNamespace, app: str) -> str:
    return str((await ns.pod(app))["status"]["podIP"])


async def _get(ns: LabNamespace, app: str) -> Answer:
    return await http_get(await _address(ns, app), PORT, "/", PATIENCE)
