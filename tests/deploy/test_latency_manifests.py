"""deploy/latency: what it starts has valid arguments, and its Services, labels and rights fit together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from loadtests.images.build import CONTROLLER_IMAGE
from reactor.cli.latency import latency_client, latency_server
from reactor.settings.model import Latency

Json = dict[str, Any]
FOLDER = Path(__file__).parents[2] / "deploy" / "latency"
COMMANDS = {"latency-server": latency_server, "latency-client": latency_client}


def _all() -> list[Json]:
    return [item for file in sorted(FOLDER.glob("*.yaml")) for item in yaml.safe_load_all(file.read_text())]


def _of(kind: str, name: str) -> Json:
    return next(item for item in _all() if (item["kind"], item["metadata"]["name"]) == (kind, name))


def _pod(deployment: str) -> Json:
    template: Json = _of("Deployment", deployment)["spec"]["template"]
    return template


def _command(deployment: str, container: str) -> click.Context:
    found = next(each for each in _pod(deployment)["spec"]["containers"] if each["name"] == container)
    name, *arguments = found["args"]
    assert found["image"] == CONTROLLER_IMAGE.removeprefix("docker.io/library/")
    return COMMANDS[name].make_context(name, list(arguments))


@pytest.mark.parametrize("deployment", ["app", "latency-probe"])
def test_the_echo_server_listens_where_the_service_sends_to(deployment: str) -> None:
    port = _command(deployment, "latency-server").params["port"]
    containers = _pod(deployment)["spec"]["containers"]
    (echo,) = (port for each in containers for port in each["ports"] if port["name"] == "echo")
    assert (echo["containerPort"], echo["protocol"]) == (port, "UDP")


def test_the_meter_asks_at_the_port_of_the_service() -> None:
    command = _command("latency-meter", "latency-client")
    (port,) = _of("Service", "latency")["spec"]["ports"]
    assert command.params["port"] == port["nodePort"]
    assert command.params["namespace"] == _of("Deployment", "app")["metadata"]["namespace"]


def test_nodes_answer_for_pods_of_their_own_only() -> None:
    services = [item["spec"] for item in _all() if item["kind"] == "Service"]
    assert {(each["type"], each["externalTrafficPolicy"]) for each in services} == {("NodePort", "Local")}
    selected = _of("Service", "latency")["spec"]["selector"].items()
    assert all(selected <= _pod(name)["metadata"]["labels"].items() for name in ("app", "latency-probe"))
    assert not selected <= _pod("latency-meter")["metadata"]["labels"].items()


def test_the_roles_are_those_of_the_settings_and_probes_may_go_where_targets_may() -> None:
    for deployment, selector in (("app", Latency().target), ("latency-probe", Latency().probe)):
        key, _, value = selector.partition("=")
        assert _pod(deployment)["metadata"]["labels"][key] == value
    assert _pod("app")["spec"]["tolerations"] == _pod("latency-probe")["spec"]["tolerations"]
    assert {_pod(name)["spec"]["schedulerName"] for name in ("app", "latency-probe")} == {"rematch"}


def test_every_container_of_a_target_has_a_pre_stop_hook() -> None:
    """Without one in each of them a pod is released and not surged by scale, which a NodePort on the way notices."""
    assert all(each["lifecycle"]["preStop"] for each in _pod("app")["spec"]["containers"])


def test_the_meter_may_list_pods_of_its_namespace_and_get_nodes_and_nothing_else() -> None:
    rules = {item["kind"]: item["rules"] for item in _all() if item["kind"] in ("Role", "ClusterRole")}
    assert rules == {
        "Role": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
        "ClusterRole": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}],
    }
    assert _pod("latency-meter")["spec"]["serviceAccountName"] == "rematch-latency-meter"
