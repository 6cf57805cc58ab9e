"""The manifests say what the code needs: permissions, flags that exist, valid settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from reactor.cli.commands import run
from reactor.cluster.kinds import CLUSTER_KINDS, Kind, ObjectName
from reactor.settings.load import parse_settings
from reactor.settings.model import Mode

MANIFESTS = Path(__file__).parents[2] / "deploy" / "rematch.yaml"


@pytest.fixture
def objects() -> dict[str, dict[str, Any]]:
    found = [item for item in yaml.safe_load_all(MANIFESTS.read_text()) if item]
    return {item["kind"]: item for item in found}


def _verbs(role: dict[str, Any], group: str, resource: str) -> set[str]:
    rules = [rule for rule in role["rules"] if group in rule["apiGroups"] and resource in rule["resources"]]
    return {verb for rule in rules for verb in rule["verbs"]}


def _group(kind: Kind) -> str:
    path = kind.path()
    return path.split("/")[2] if path.startswith("/apis/") else ""


@pytest.mark.parametrize("kind", CLUSTER_KINDS)
def test_every_watched_kind_may_be_listed_and_watched(objects: dict[str, dict[str, Any]], kind: Kind) -> None:
    assert {"list", "watch"} <= _verbs(objects["ClusterRole"], _group(kind), kind.value)


def test_every_write_is_allowed_and_nothing_is_wild(objects: dict[str, dict[str, Any]]) -> None:
    role = objects["ClusterRole"]
    assert _verbs(role, "", "pods/eviction") == {"create"}
    assert _verbs(role, "", "pods/binding") == {"create"}
    assert {"create", "patch"} <= _verbs(role, "", "events")
    assert all("*" not in (*rule["verbs"], *rule["resources"], *rule["apiGroups"]) for rule in role["rules"])
    assert not any("secrets" in rule["resources"] for rule in role["rules"])


def _rules() -> list[dict[str, Any]]:
    found = [item for item in yaml.safe_load_all(MANIFESTS.read_text()) if item]
    return [rule for item in found if item["kind"] in ("Role", "ClusterRole") for rule in item["rules"]]


def test_no_rule_says_everything_or_reaches_for_what_is_not_ours() -> None:
    for rule in _rules():
        assert not any("*" in part for part in (*rule["verbs"], *rule["resources"], *rule["apiGroups"])), rule
        assert not {"secrets", "nodes/proxy", "serviceaccounts/token"} & set(rule["resources"]), rule
        assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"]), rule
        assert "nonResourceURLs" not in rule


def test_our_account_has_our_roles_and_no_other() -> None:
    found = [item for item in yaml.safe_load_all(MANIFESTS.read_text()) if item]
    bindings = [item for item in found if item["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    own = {(item["kind"], item["metadata"]["name"]) for item in found if item["kind"] in ("Role", "ClusterRole")}
    assert {(item["roleRef"]["kind"], item["roleRef"]["name"]) for item in bindings} == own
    assert all([subject["name"] for subject in item["subjects"]] == ["rematch"] for item in bindings)


def test_the_settings_are_valid_and_only_observe(objects: dict[str, dict[str, Any]]) -> None:
    assert parse_settings(objects["ConfigMap"]["data"]["settings.yaml"], "ConfigMap").mode is Mode.OBSERVE


def test_the_deployment_uses_flags_that_exist(objects: dict[str, dict[str, Any]]) -> None:
    container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][0] == "run"
    context = click.Context(run, help_option_names=["-h", "--help"])  # click remembers them with the command
    run.parse_args(context, list(container["args"][1:]))
    assert context.params["configmap"] == ObjectName("rematch", "rematch")
    assert context.params["bind"] == "0.0.0.0"
