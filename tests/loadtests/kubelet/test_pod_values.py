from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest

from loadtests.kubelet.addresses import AddressPool, NoAddressError, port_for_pods
from loadtests.kubelet.container import RestartBackoff
from loadtests.kubelet.pod_spec import PodSpecError, ProbeSpec, parse_pod
from loadtests.kubelet.pod_status import PodStatus, Running, Terminated, Waiting, render
from reactor.clock import SystemClock


class Clock(SystemClock):
    time = 0.0

    def monotonic(self) -> float:
        return self.time


def pod(**container: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "shop", "uid": "u", "resourceVersion": "7"},
        "spec": {"containers": [{"name": "web", **container}]},
    }


def test_a_pod_without_words_gets_the_kubelets_defaults() -> None:
    found = parse_pod(pod(livenessProbe={"httpGet": {"path": "/h", "port": 9000}}))
    assert found.container.liveness == ProbeSpec("/h", 9000, 10, 1, 0, 3, 1)
    assert found.container.readiness is None
    assert found.container.cpu_limit == float("inf")
    assert found.container.cpu_weight == 0.002
    assert (found.container.port, found.grace) == (8080, 30)


def test_ports_by_name_and_resources() -> None:
    found = parse_pod(
        pod(
            ports=[{"name": "http", "containerPort": 8081}],
            readinessProbe={"httpGet": {"port": "http"}, "periodSeconds": 2, "successThreshold": 2},
            resources={"requests": {"cpu": "250m"}, "limits": {"cpu": "1500m"}},
        )
    )
    assert found.container.readiness == ProbeSpec("/", 8081, 2, 1, 0, 3, 2)
    assert (found.container.cpu_weight, found.container.cpu_limit) == (0.25, 1.5)


@pytest.mark.parametrize(
    ("container", "words"),
    [
        ({"livenessProbe": {"exec": {"command": ["true"]}}}, r"spec.containers\[web\].livenessProbe: .*httpGet"),
        ({"livenessProbe": {"httpGet": {"port": "nope"}}}, r"livenessProbe.httpGet.port: no containerPort .*'nope'"),
        ({"startupProbe": {"httpGet": {"port": 1}}}, "startupProbe: not supported"),
        ({"resources": {"requests": {"cpu": "many"}}}, "resources.requests.cpu: 'many' is not a quantity"),
    ],
)
def test_what_the_lab_cannot_run_is_named(container: dict[str, Any], words: str) -> None:
    with pytest.raises(PodSpecError, match=words):
        parse_pod(pod(**container))


def test_two_containers_are_refused() -> None:
    item = pod()
    item["spec"]["containers"].append({"name": "side"})
    with pytest.raises(PodSpecError, match="exactly one container, got 2"):
        parse_pod(item)


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        (PodStatus(0), "Pending"),
        (PodStatus(0, state=Running(1)), "Running"),
        (PodStatus(0, state=Waiting("CrashLoopBackOff"), restarts=1), "Running"),
        (PodStatus(0, state=Terminated(1, 2, 137)), "Running"),
        (PodStatus(0, state=Terminated(1, 2, 0), ending=True), "Succeeded"),
        (PodStatus(0, state=Terminated(1, 2, 137), ending=True), "Failed"),
    ],
)
def test_phases(status: PodStatus, phase: str) -> None:
    assert render(parse_pod(pod()), status)["phase"] == phase


def test_a_status_names_what_is_not_ready() -> None:
    body = render(parse_pod(pod()), PodStatus(0, host="127.16.0.1", state=Running(5)))
    ready = next(item for item in body["conditions"] if item["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ContainersNotReady")
    assert {item["type"] for item in body["conditions"]} >= {"PodScheduled", "Initialized", "ContainersReady"}
    assert (body["podIP"], body["podIPs"], body["qosClass"]) == ("127.16.0.1", [{"ip": "127.16.0.1"}], "BestEffort")


def test_backoff_doubles_is_capped_and_forgotten() -> None:
    backoff = RestartBackoff(scale=1)
    assert [backoff.next_delay(0) for _ in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert backoff.next_delay(601) == 0


def test_backoff_can_be_scaled() -> None:
    backoff = RestartBackoff(scale=0.1)
    assert [backoff.next_delay(0) for _ in range(3)] == [0, 1, 2]


def test_addresses_are_unique_and_rest_before_they_are_used_again() -> None:
    clock = Clock()
    pool = AddressPool(clock, quarantine=60, network=ipaddress.IPv4Network("127.16.9.0/29"))
    taken = {pool.take(18090) for _ in range(7)}
    assert len(taken) == 7
    one = taken.pop()
    pool.give_back(one)
    with pytest.raises(NoAddressError, match=r"127\.16\.9\.0/29"):
        pool.take(18090)
    clock.time = 61
    assert pool.take(18090) == one


def test_a_port_that_another_program_has_everywhere_is_passed_over() -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        taken = other.getsockname()[1]
        with pytest.raises(NoAddressError, match=f"free at port {taken}"):
            AddressPool(Clock()).take(taken)
        assert port_for_pods(taken) != taken
