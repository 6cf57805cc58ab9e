"""The controller as a pod on one of the nodes: the project's own manifests, with a volume that this lab can give."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from loadtests.images.build import controller_image
from loadtests.nodes.lab import Lab
from loadtests.nodes.spec import LabError
from loadtests.tools.cache import Cache
from loadtests.tools.programs import to_stderr
from loadtests.workloads.api import LabApi, has_condition
from reactor.errors import Conflict

Json = dict[str, Any]
NAMESPACE = "rematch"
_GONE_SECONDS = 90.0
_READY_SECONDS = 120.0
_CLONE = Path(__file__).parents[2]
MANIFESTS = _CLONE / "deploy" / "rematch.yaml"
RIGHTS = frozenset({"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"})
_POLICIES = frozenset(
    {f"{kind}AdmissionPolicy{rest}" for kind in ("Mutating", "Validating") for rest in ("", "Binding")}
)
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
COLLECTIONS = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Namespace": "/api/v1/namespaces",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "Service": "/api/v1/namespaces/{}/services",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "Role": f"{_RBAC}/namespaces/{{}}/roles",
    "RoleBinding": f"{_RBAC}/namespaces/{{}}/rolebindings",
    "MutatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
}


def manifests() -> list[Json]:
    if not MANIFESTS.exists():
        raise LabError(
            f"{MANIFESTS} is missing: this part of the lab needs a clone of the repository (make setup there)"
        )
    return list(yaml.safe_load_all(MANIFESTS.read_text()))


async def create(api: LabApi, documents: Iterable[Json]) -> None:
    """What is there already stays as it is."""
    for document in documents:
        collection = COLLECTIONS[document["kind"]].format(document["metadata"].get("namespace", ""))
        try:
            await api.create(collection, document)
        except Conflict:
            continue


async def grant_rights(api: LabApi) -> None:
    """The service account and its rules, for a controller that runs beside the cluster."""
    await create(api, [document for document in manifests() if document["kind"] in RIGHTS])


async def install_policies(api: LabApi) -> None:
    """Those of the manifests: hints for pods of other schedulers, and the limits of the controller's own rights."""
    await create(api, [document for document in manifests() if document["kind"] in _POLICIES])


async def deploy_controller(lab: Lab, node: str, settings: Mapping[str, Any]) -> Path:
    """The Deployment on `node`; returns the folder on this machine that is its volume."""
    documents = [_adapted(document, node, settings) for document in manifests()]
    await lab.nodes[node].import_image(await controller_image(_CLONE, Cache.usual(), to_stderr))
    store = _volume_folder(lab.folder / "controller-store")
    await create(lab.api, [_volume(store), *documents])
    return store


def url_of(controller: Json) -> str:
    """The HTTP API of the controller's pod."""
    return f"http://{controller['status']['podIP']}:8080"


async def controller_url(api: LabApi, deadline: float = _READY_SECONDS) -> str:
    """Where it answers, once it is Ready; the machine reaches pods by their addresses."""
    found: list[Json] = []
    try:
        async with asyncio.timeout(deadline):
            while True:
                found = (await api.get(f"/api/v1/namespaces/{NAMESPACE}/pods"))["items"]
                for pod in found:
                    if has_condition(pod, "Ready"):
                        return url_of(pod)
                await asyncio.sleep(0.2)
    except TimeoutError as error:
        states = [each.get("state") for pod in found for each in pod["status"].get("containerStatuses", ())]
        raise LabError(f"the controller's pod was not Ready within {deadline:g} s: {states or found}") from error


async def remove_controller(lab: Lab) -> None:
    """The Deployment and its pod; rights, settings and volume stay."""
    await lab.api.delete(f"{COLLECTIONS['Deployment'].format(NAMESPACE)}/rematch", {"propagationPolicy": "Background"})
    async with asyncio.timeout(_GONE_SECONDS):
        while (await lab.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods"))["items"]:
            await asyncio.sleep(0.2)


def _volume_folder(folder: Path) -> Path:
    """hostPath volumes are not handed to a pod's group, so this one belongs to the pod's user from the start."""
    folder.mkdir()
    os.chown(folder, 65532, 65532)
    return folder


def _volume(folder: Path) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "rematch-store"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": str(folder)},
        },
    }


def _adapted(document: Json, node: str, settings: Mapping[str, Any]) -> Json:
    if document["kind"] == "ConfigMap":
        return {**document, "data": {"settings.yaml": yaml.safe_dump(dict(settings))}}
    if document["kind"] == "Deployment":
        pod = document["spec"]["template"]["spec"]
        pod["nodeSelector"] = {"kubernetes.io/hostname": node}
        pod["tolerations"] = [{"key": "lab/controller", "operator": "Exists"}]
        container = pod["containers"][0]
        container["args"] += ["--bind=0.0.0.0", "--auth=none", "--allowed-host=$(POD_IP)"]
        container["env"] = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    return document
