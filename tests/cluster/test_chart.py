"""The Helm chart on a real control plane: every object is accepted as written, and installing leaves nothing unsaid."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from loadtests.chart import CHART, RENDERED, helm, rendered, template
from loadtests.controlplane import ControlPlane, ControlPlaneOptions, control_plane
from loadtests.tools.processes import run
from loadtests.tools.programs import ensure

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]
EVERYTHING = (
    "--set=replicas=2",
    "--set=priorityClass.create=true",
    "--set=rbac.namespaces={shop,web}",
    "--set=monitoring.serviceMonitor.enabled=true",
    "--set=monitoring.rules.enabled=true",
    "--set=networkPolicy.dashboardFrom[0].namespaceSelector.matchLabels.team=ops",
)
OPERATOR = ("prometheusrules.monitoring.coreos.com", "servicemonitors.monitoring.coreos.com")
_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Shell:
    """Helm and kubectl as the admin of this control plane."""

    plane: ControlPlane
    kubectl_program: Path

    async def helm(self, *arguments: str) -> str:
        return await helm("--kubeconfig", str(self.plane.kubeconfig), "-n", "rematch", *arguments, deadline=_SECONDS)

    async def kubectl(self, *arguments: str) -> str:
        command = [str(self.kubectl_program), "--kubeconfig", str(self.plane.kubeconfig), *arguments]
        return await run(command, deadline=_SECONDS)

    async def get(self, what: str, *arguments: str) -> list[Json]:
        items: list[Json] = json.loads(await self.kubectl("get", what, "-o", "json", *arguments))["items"]
        return items

    async def names(self, what: str, *arguments: str) -> set[str]:
        return {item["metadata"]["name"] for item in await self.get(what, *arguments)}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shell(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shell]:
    """A control plane of its own: Helm refuses to take over objects that it did not make."""
    folder = tmp_path_factory.mktemp("chart")
    programs = await ensure(["kubectl", "prometheus-operator-crds.yaml"])
    crds = folder / "operator.yaml"
    texts = programs["prometheus-operator-crds.yaml"].read_text().split("---\n")
    crds.write_text("---\n".join(text for text in texts if any(f"\n  name: {name}\n" in text for name in OPERATOR)))
    (folder / "plane").mkdir()
    async with control_plane(ControlPlaneOptions(folder / "plane")) as plane:
        opened = Shell(plane, programs["kubectl"])
        await opened.kubectl("create", "-f", str(crds))
        await opened.kubectl("wait", "--for=condition=Established", "crd", *OPERATOR)
        for namespace in ("rematch", "shop", "web"):
            await opened.kubectl("create", "namespace", namespace)
        yield opened


@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["defaults", "everything"])
async def test_the_chart_passes_lint(values: tuple[str, ...]) -> None:
    assert "0 chart(s) failed" in await helm("lint", "--strict", str(CHART), *values)


async def test_the_manifests_are_what_helm_renders() -> None:
    assert RENDERED.read_text() == await rendered(), "run make manifests"


@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["defaults", "everything"])
async def test_the_api_server_accepts_every_field(shell: Shell, tmp_path: Path, values: tuple[str, ...]) -> None:
    """Strictly: a field that it does not know, or one given twice, is an error."""
    objects = tmp_path / "objects.yaml"
    objects.write_text(await template(*values))
    said = await shell.kubectl("create", "--dry-run=server", "--validate=strict", "-f", str(objects))
    assert said.count("created") == sum(1 for item in yaml.safe_load_all(objects.read_text()) if item)


async def test_the_api_server_refuses_a_field_that_does_not_exist(shell: Shell, tmp_path: Path) -> None:
    """The test above would notice."""
    objects = tmp_path / "objects.yaml"
    objects.write_text((await template()).replace("serviceAccountName:", "serviceAccountNam:"))
    with pytest.raises(Exception, match="unknown field"):
        await shell.kubectl("create", "--dry-run=server", "--validate=strict", "-f", str(objects))


async def test_install_upgrade_and_uninstall(shell: Shell) -> None:
    await shell.helm("install", "rematch", str(CHART))
    assert await shell.names("deployment", "-n", "rematch") == {"rematch"}
    (config,) = [
        item for item in await shell.get("configmap", "-n", "rematch") if item["metadata"]["name"] == "rematch"
    ]
    assert yaml.safe_load(config["data"]["settings.yaml"])["mode"] == "observe"

    await shell.helm("upgrade", "rematch", str(CHART), "--reset-then-reuse-values", "--set", "settings.mode=act")
    (config,) = [
        item for item in await shell.get("configmap", "-n", "rematch") if item["metadata"]["name"] == "rematch"
    ]
    assert yaml.safe_load(config["data"]["settings.yaml"])["mode"] == "act"

    await shell.helm("upgrade", "rematch", str(CHART), "--reset-then-reuse-values", *EVERYTHING)
    assert await shell.names("deployment", "-n", "rematch") == set()
    assert await shell.names("statefulset", "-n", "rematch") == {"rematch"}
    assert await shell.names("role", "-n", "shop") == {"rematch-pods"}
