"""The Helm chart on a real control plane: every object is accepted as written, and installing leaves nothing unsaid."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
import pytest_asyncio
import yaml

from loadtests.chart import CHART, RENDERED, helm, rendered, template
from loadtests.controlplane import ControlPlane, ControlPlaneOptions, control_plane
from loadtests.tools.processes import CommandFailed, run
from loadtests.tools.programs import ensure
from reactor.cli.main import cli
from storage.size import volume_bytes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]
EVERYTHING = (
    "--set=replicas=2",
    "--set=priorityClass.create=true",
    "--set=rbac.namespaces={shop,web}",
    "--set=monitoring.serviceMonitor.enabled=true",
    "--set=monitoring.rules.enabled=true",
    "--set=monitoring.dashboard.enabled=true",
    "--set=dashboard.expose=true",
    "--set=dashboard.allowedHosts={rematch.example.com}",
    "--set=policies.events=true",
    "--set=scheduler.enabled=true",
    "--set=scheduler.image=kube-scheduler:v1.36.3",
    "--set=networkPolicy.dashboardFrom[0].namespaceSelector.matchLabels.team=ops",
    "--set=latency.brokerSecretName=broker",
    "--set=latency.brokerHost=broker.example.org",
    "--set=latency.caKey=ca.crt",
)
POSTGRESQL = ("--set=store.postgresql.secretName=database",)
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


@pytest.mark.parametrize("values", [(), EVERYTHING, POSTGRESQL], ids=["defaults", "everything", "postgresql"])
async def test_the_chart_passes_lint(values: tuple[str, ...]) -> None:
    assert "0 chart(s) failed" in await helm("lint", "--strict", str(CHART), *values)


async def test_the_manifests_are_what_helm_renders() -> None:
    assert RENDERED.read_text() == await rendered(), "run make manifests"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (("--set", "replicas=3"), "maximum: got 3, want 2"),
        (("--set", "replica=2"), "additional properties 'replica' not allowed"),
        (("--set", "settings.mode=on"), "/settings/mode"),
        (("--set", "rbac.namespaces={shop},settings.managed.namespaces={web}"), "managed.namespaces names web"),
        (("--set", "rbac.namespaces={shop},settings.managed.anySchedulerNamespaces={web}"), "Namespaces names web"),
        (("--set", "latency.brokerSecretName=broker"), "latency.brokerHost: the only host"),
    ],
    ids=lambda given: given[1] if isinstance(given, tuple) else "",
)
async def test_values_that_cannot_work_are_refused(values: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandFailed, match=said):
        await template(*values)


async def test_with_rights_in_some_namespaces_refused_settings_are_still_an_event_on_the_config_map() -> None:
    objects = [item for item in yaml.safe_load_all(await template("--set=rbac.namespaces={shop}")) if item]
    (own,) = (each for each in objects if each["kind"] == "Role" and each["metadata"]["namespace"] == "rematch")
    assert [rule["verbs"] for rule in own["rules"] if "events" in rule["resources"]] == [["create", "patch"]]


async def test_names_that_yaml_reads_as_something_else_stay_text() -> None:
    values = (
        "--namespace=123",
        "--set-string=rbac.namespaces={on,1e3}",
        "--set-string=serviceAccount.name=0x1f,store.storageClass=1,priorityClass.name=2,image.pullSecrets={3}",
        "--set-string=podLabels.app\\.kubernetes\\.io/name=other,podLabels.team=ops",
    )
    objects = [item for item in yaml.safe_load_all(await template(*values)) if item]
    spaces = {item["metadata"]["namespace"] for item in objects if "namespace" in item["metadata"]}
    assert spaces == {"123", "on", "1e3"}
    (pod,) = (item["spec"]["template"] for item in objects if item["kind"] == "Deployment")
    assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "rematch", "the selector needs it"
    assert pod["metadata"]["labels"]["team"] == "ops"
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["priorityClassName"]) == ("0x1f", "2")
    assert pod["spec"]["imagePullSecrets"] == [{"name": "3"}]
    (claim,) = (item["spec"] for item in objects if item["kind"] == "PersistentVolumeClaim")
    assert claim["storageClassName"] == "1"


async def test_every_pod_starts_with_options_that_exist() -> None:
    """The controller with a dashboard that is exposed, and the Job before `helm uninstall`."""
    objects = [item for item in yaml.safe_load_all(await template(*EVERYTHING)) if item]
    pods = [item["spec"]["template"]["spec"] for item in objects if item["kind"] in ("StatefulSet", "Job")]
    started = [container["args"] for pod in pods for container in pod["containers"]]
    assert sorted(arguments[0] for arguments in started) == ["release", "run"]
    for name, *arguments in started:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        context = click.Context(command, help_option_names=["-h", "--help"])
        assert command.parse_args(context, list(arguments)) == []


@pytest.mark.parametrize("replicas", [1, 2])
async def test_with_postgresql_the_url_is_a_file_and_there_is_no_volume(replicas: int) -> None:
    objects = [i for i in yaml.safe_load_all(await template(*POSTGRESQL, f"--set=replicas={replicas}")) if i]
    assert "PersistentVolumeClaim" not in {item["kind"] for item in objects}
    (workload,) = (item["spec"] for item in objects if item["kind"] in ("Deployment", "StatefulSet"))
    assert "volumeClaimTemplates" not in workload
    pod = workload["template"]["spec"]
    assert "--store=@/etc/rematch/store/url" in pod["containers"][0]["args"]
    (url,) = (volume["secret"] for volume in pod["volumes"] if volume["name"] == "store-url")
    assert url == {"secretName": "database", "items": [{"key": "url", "path": "url"}]}
    (schema,) = (each for each in pod["containers"][0]["env"] if each["name"] == "REMATCH_STORE_SCHEMA")
    assert schema.get("value", "of the pod") == ("rematch" if replicas == 1 else "of the pod")


async def test_the_credentials_of_the_broker_are_files_and_name_their_host() -> None:
    objects = [item for item in yaml.safe_load_all(await template(*EVERYTHING)) if item]
    (pod,) = (item["spec"]["template"]["spec"] for item in objects if item["kind"] == "StatefulSet")
    (container,) = (each for each in pod["containers"] if "--broker-host=broker.example.org" in each["args"])
    assert {"--broker-credentials=/etc/rematch/broker", "--broker-ca-file=/etc/rematch/broker/ca.crt"} <= {
        *container["args"]
    }
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "broker")
    assert mount == {"name": "broker", "mountPath": "/etc/rematch/broker", "readOnly": True}
    assert {"name": "broker", "secret": {"secretName": "broker"}} in pod["volumes"]


@pytest.mark.parametrize("gigabytes", [1, 4, 20])
async def test_a_larger_history_gets_a_larger_volume(gigabytes: int) -> None:
    objects = yaml.safe_load_all(await template("--set", f"settings.history.maxBytes={gigabytes}000000000"))
    (claim,) = [item for item in objects if item and item["kind"] == "PersistentVolumeClaim"]
    needed = volume_bytes(gigabytes * 10**9) / 2**30
    assert claim["spec"]["resources"]["requests"]["storage"] == f"{math.ceil(needed)}Gi"


@pytest.mark.parametrize("values", [(), EVERYTHING, POSTGRESQL], ids=["defaults", "everything", "postgresql"])
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
    with pytest.raises(CommandFailed, match="unknown field"):
        await shell.kubectl("create", "--dry-run=server", "--validate=strict", "-f", str(objects))


async def _settings(shell: Shell) -> Json:
    found = await shell.get("configmap", "-n", "rematch", "--field-selector=metadata.name=rematch")
    settings: Json = yaml.safe_load(found[0]["data"]["settings.yaml"])
    return settings


async def test_install_upgrade_and_uninstall(shell: Shell) -> None:
    before = await _everything(shell)
    await shell.helm("install", "rematch", str(CHART))
    assert await shell.names("deployment", "-n", "rematch") == {"rematch"}
    assert (await _settings(shell))["mode"] == "observe"

    keep = "--reset-then-reuse-values"
    await shell.helm("upgrade", "rematch", str(CHART), keep, "--set", "settings.mode=act")
    assert (await _settings(shell))["mode"] == "act"

    await shell.helm("upgrade", "rematch", str(CHART), keep, *EVERYTHING)
    assert await shell.names("deployment", "-n", "rematch") == {"rematch-scheduler"}
    assert await shell.names("statefulset", "-n", "rematch") == {"rematch"}
    assert await shell.names("role", "-n", "shop") == {"rematch-pods"}
    assert await _settings(shell) == {
        **await _settings(shell),
        "mode": "act",
        "managed": {"namespaces": ["shop", "web"]},
    }

    hanging = time.monotonic()
    with pytest.raises(CommandFailed, match="Job/rematch/rematch-release not ready"):
        await shell.helm("uninstall", "rematch", "--timeout", "5s")
    assert time.monotonic() - hanging < 60
    assert await shell.names("statefulset", "-n", "rematch") == {"rematch"}, "nothing is deleted before moves ended"
    assert await shell.names("job", "-n", "rematch") == set()

    uninstall = asyncio.create_task(shell.helm("uninstall", "rematch", "--wait"))
    await _release_succeeds(shell)
    await uninstall
    assert await _everything(shell) - before == LEFT


async def _release_succeeds(shell: Shell) -> None:
    """There is no node to run the Job's pod on, so this says that it ended well."""
    selected = ("-n", "rematch", "-l", "app.kubernetes.io/name=rematch-release")
    async with asyncio.timeout(60):
        while not (pods := await shell.names("pod", *selected)):
            await asyncio.sleep(0.2)
    ended = json.dumps({"status": {"phase": "Succeeded"}})
    await shell.kubectl(
        "patch", "pod", pods.pop(), "-n", "rematch", "--subresource=status", "--type=merge", "-p", ended
    )


async def test_without_hooks_a_release_is_gone_whatever_hangs(shell: Shell) -> None:
    before = await _everything(shell)
    await shell.helm("install", "rematch", str(CHART))
    await shell.helm("uninstall", "rematch", "--no-hooks", "--wait")
    assert await _everything(shell) == before, "the CRDs and the PVC were there already"


LEFT = {
    "customresourcedefinition/moves.rematch.io",
    "customresourcedefinition/placementhints.rematch.io",
    "customresourcedefinition/requests.rematch.io",
    "persistentvolumeclaim/rematch",
    "persistentvolumeclaim/store-rematch-0",
    "persistentvolumeclaim/store-rematch-1",
}
"""What README says: the CRDs with the journal, and the volumes with the history."""


async def _everything(shell: Shell) -> set[str]:
    """All objects that somebody has put into the cluster, and that do not go with another one."""
    kinds = (await shell.kubectl("api-resources", "--verbs=list", "-o", "name")).split()
    left_out = (
        "events",
        "leases",
        "endpoint",
        "metrics.k8s.io",
        "apiservices",
        "controllerrevisions",
        "componentstatuses",
    )
    listed = await shell.kubectl(
        "get", ",".join(kind for kind in kinds if not kind.startswith(left_out)), "-A", "-o", "json"
    )
    return {
        f"{item['kind'].lower()}/{item['metadata']['name']}"
        for item in json.loads(listed)["items"]
        if not item["metadata"].get("ownerReferences")
    }
