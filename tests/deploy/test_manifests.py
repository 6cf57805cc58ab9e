"""The manifests say what the code needs: permissions, flags that exist, valid settings. The chart renders them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from loadtests.chart import CHART, RIGHTS, digest, recorded_digest, rights_file
from loadtests.images.build import CONTROLLER_IMAGE
from reactor.cli.commands import run
from reactor.cluster.kinds import CLUSTER_KINDS, Kind, ObjectName
from reactor.cluster.rights import INSTALL, rights
from reactor.settings.load import parse_settings
from reactor.settings.model import Mode, Settings
from storage.size import volume_bytes

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "deploy" / "rematch.yaml"


@pytest.fixture
def objects() -> dict[str, Json]:
    return {item["kind"]: item for item in _all()}


def _all() -> list[Json]:
    return [item for item in yaml.safe_load_all(MANIFESTS.read_text()) if item]


def _rules() -> list[Json]:
    return [rule for item in _all() if item["kind"] in ("Role", "ClusterRole") for rule in item["rules"]]


def test_the_manifests_are_rendered_from_this_chart() -> None:
    assert rights_file() == RIGHTS.read_text(), "reactor/cluster/rights.py has changed: run make manifests"
    assert recorded_digest() == digest(), (
        "deploy/chart has changed: run make manifests (change the chart, not its output)"
    )


def test_the_manifests_grant_the_listed_rights_and_no_other() -> None:
    granted = {
        (group, resource, verb, name)
        for rule in _rules()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }
    assert granted == {(right.group, right.resource, right.verb, right.name) for right in rights()}


@pytest.mark.parametrize("kind", CLUSTER_KINDS)
def test_every_watched_kind_may_be_listed_and_watched(kind: Kind) -> None:
    group = kind.path().split("/")[2] if kind.path().startswith("/apis/") else ""
    found = {right.verb for right in rights() if (right.group, right.resource) == (group, kind.value)}
    assert {"list", "watch"} <= found


def test_no_rule_says_everything_or_reaches_for_what_is_not_ours() -> None:
    for rule in _rules():
        assert not any("*" in part for part in (*rule["verbs"], *rule["resources"], *rule["apiGroups"])), rule
        assert not {"secrets", "nodes/proxy", "serviceaccounts/token"} & set(rule["resources"]), rule
        assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"]), rule
        assert "nonResourceURLs" not in rule


def test_our_account_has_our_roles_and_no_other() -> None:
    bindings = [item for item in _all() if item["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    own = {(item["kind"], item["metadata"]["name"]) for item in _all() if item["kind"] in ("Role", "ClusterRole")}
    assert {(item["roleRef"]["kind"], item["roleRef"]["name"]) for item in bindings} == own
    assert all([subject["name"] for subject in item["subjects"]] == ["rematch"] for item in bindings)


def test_rights_and_policies_can_be_mended_without_touching_the_settings() -> None:
    """The file has `mode: observe`: whoever follows our advice must not stop binding by it."""
    label, _, value = INSTALL.rpartition(" ")[2].partition("!=")
    left_out = [item["kind"] for item in _all() if item["metadata"].get("labels", {}).get(label) == value]
    assert left_out == ["ConfigMap"]


def test_the_settings_are_valid_and_only_observe(objects: dict[str, Json]) -> None:
    assert parse_settings(objects["ConfigMap"]["data"]["settings.yaml"], "ConfigMap").mode is Mode.OBSERVE


def test_the_deployment_uses_flags_that_exist(objects: dict[str, Json]) -> None:
    container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][0] == "run"
    context = click.Context(run, help_option_names=["-h", "--help"])  # click remembers them with the command
    run.parse_args(context, list(container["args"][1:]))
    assert context.params["configmap"] == ObjectName("rematch", "rematch")
    assert context.params["bind"] == "127.0.0.1", "the dashboard is reached by kubectl port-forward"
    assert (context.params["probe_bind"], context.params["probe_port"]) == ("0.0.0.0", 8081)


def test_probes_and_services_use_ports_that_the_container_opens(objects: dict[str, Json]) -> None:
    container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    opened = {port["name"] for port in container["ports"]}
    probed = {container[probe]["httpGet"]["port"] for probe in ("readinessProbe", "livenessProbe")}
    served = {port["targetPort"] for port in objects["Service"]["spec"]["ports"]}
    assert probed | served <= opened


def test_the_pod_runs_as_the_restricted_profile_of_its_namespace_wants(objects: dict[str, Json]) -> None:
    assert objects["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    wanted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
    assert all(wanted.items() <= container["securityContext"].items() for container in pod["containers"])


def test_the_volume_is_sized_by_the_formula(objects: dict[str, Json]) -> None:
    needed = volume_bytes(Settings().history.max_bytes) / 2**30
    asked = objects["PersistentVolumeClaim"]["spec"]["resources"]["requests"]["storage"]
    assert asked == f"{math.ceil(needed)}Gi"


def test_chart_image_and_package_have_one_version(objects: dict[str, Json]) -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    (version,) = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert (chart["version"], chart["appVersion"]) == (version, version)
    image = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]["image"]
    assert CONTROLLER_IMAGE.endswith(f"/{image}")


def test_the_schema_knows_every_value_and_no_other() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert _names(values) <= _described(schema)
    assert {name.partition(".")[0] for name in _described(schema)} == values.keys() | {"global"}


def _names(values: Json, before: str = "") -> set[str]:
    found = set()
    for name, value in values.items():
        found.add(f"{before}{name}")
        if isinstance(value, dict) and name not in ("settings", "resources", "labels"):
            found |= _names(value, f"{before}{name}.")
    return found


def _described(schema: Json, before: str = "") -> set[str]:
    found = set()
    for name, value in schema.get("properties", {}).items():
        found |= {f"{before}{name}"} | _described(value, f"{before}{name}.")
    return found
