"""The service account of the manifests, with a token in a file that can be replaced."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests.controlplane import ControlPlane, forget_journal
from loadtests.nodes.in_cluster import NAMESPACE, manifests
from loadtests.workloads.api import LabApi
from reactor.cluster.rights import Scope, rights
from tests.support.manifests import apply, deploy

ACT = """
mode: act
triggers: {evaluationInterval: 1s}
metrics: {metricsApi: {interval: 500ms}}
decision: {cooldown: 300s}
"""
Permission = tuple[str, str, str]
"""API group, resource, verb."""
_SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"


@dataclass(frozen=True, slots=True)
class Account:
    plane: ControlPlane
    api: LabApi
    """The admin's."""
    token_file: Path
    kubeconfig: Path

    async def issue(self, name: str) -> str:
        """A token that lives as long as the Secret of this name."""
        secret = await self.api.create(_SECRETS, {"metadata": {"name": name}})
        bound = {"kind": "Secret", "name": name, "uid": secret["metadata"]["uid"]}
        token = await self.plane.token(NAMESPACE, "rematch", bound_to=bound)
        fresh = self.token_file.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(token)
        os.replace(fresh, self.token_file)
        return token

    async def revoke(self, name: str) -> None:
        await self.api.delete(f"{_SECRETS}/{name}", {})

    async def settings(self, text: str) -> None:
        config_map = next(item for item in manifests() if item["kind"] == "ConfigMap")
        await apply(self.api, {**config_map, "data": {"settings.yaml": text}})

    async def without(self, group: str, resource: str, verb: str) -> None:
        """Takes one permission away."""
        for item in manifests():
            if item["kind"] in ("ClusterRole", "Role"):
                rules = [rule for given in item["rules"] for rule in _but(given, (group, resource, verb))]
                await apply(self.api, {**item, "rules": rules})
        await self.until_judged((group, resource, verb), allowed=False)

    async def until_judged(self, permission: Permission, *, allowed: bool) -> None:
        """Rules are in force a moment after they were written."""
        async with asyncio.timeout(20):
            while await self._allowed(permission) is not allowed:
                await asyncio.sleep(0.02)

    async def _allowed(self, permission: Permission) -> bool:
        group, resource, verb = permission
        plural, _, subresource = resource.partition("/")
        ours = _where(permission)
        asked = {"group": group, "resource": plural, "subresource": subresource, "verb": verb, **ours}
        spec = {"user": f"system:serviceaccount:{NAMESPACE}:rematch", "resourceAttributes": asked}
        review = await self.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
        return bool(review["status"]["allowed"])


@asynccontextmanager
async def open_account(plane: ControlPlane, folder: Path) -> AsyncIterator[Account]:
    api = plane.client()
    token_file = folder / "token"
    kubeconfig = plane.write_kubeconfig(folder / "kubeconfig", token_file=token_file)
    account = Account(plane, api, token_file, kubeconfig)
    try:
        await deploy(api, ACT)
        await forget_journal(api)
        for permission in permissions():
            await account.until_judged(permission, allowed=True)
        await account.issue("first")
        yield account
    finally:
        for secret in (await api.get(_SECRETS))["items"]:
            await account.revoke(secret["metadata"]["name"])
        await api.close()


def permissions() -> list[Permission]:
    """Every (API group, resource, verb) that the manifests grant."""
    return [
        (group, resource, verb)
        for item in manifests()
        if item["kind"] in ("ClusterRole", "Role")
        for rule in item["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def _where(permission: Permission) -> dict[str, str]:
    """The namespace and the first name that a right is limited to."""
    right = next(each for each in rights() if (each.group, each.resource, each.verb) == permission)
    return {"namespace": NAMESPACE if right.scope is Scope.OWN else "", "name": right.name}


def _but(rule: dict[str, Any], taken: Permission) -> list[dict[str, Any]]:
    """The same rule for each resource alone, without the verb that is taken away."""
    split = []
    for resource in rule["resources"]:
        verbs = [verb for verb in rule["verbs"] if (rule["apiGroups"][0], resource, verb) != taken]
        if verbs:
            split.append({**rule, "resources": [resource], "verbs": verbs})
    return split
