"""What `rematch lab nodes up` gives to people: settings, an example, the controller's address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from loadtests.images.build import APP_IMAGE
from loadtests.nodes.apps import LabApp, ProbeTimes, deployment
from loadtests.nodes.command import EXAMPLE, lab_settings, print_controller
from loadtests.nodes.in_cluster import controller_url
from loadtests.nodes.spec import LabError
from loadtests.workloads.api import LabApi
from reactor.settings.load import parse_settings

URL = "http://10.200.0.1:28576"


class _Pods(LabApi):
    """Answers with the next of its lists, then with the last again and again."""

    def __init__(self, *lists: list[dict[str, Any]]) -> None:
        self.lists = list(lists)

    async def get(self, path: str, params: object = None) -> dict[str, Any]:
        return {"items": self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]}


def _pod(ready: str) -> dict[str, Any]:
    waiting = {"state": {"waiting": {"reason": "ErrImageNeverPull"}}}
    conditions = [{"type": "Ready", "status": ready}]
    return {"status": {"podIP": "10.200.5.2", "conditions": conditions, "containerStatuses": [waiting]}}


def test_the_settings_act_on_what_the_labs_prometheus_tells() -> None:
    settings = parse_settings(yaml.safe_dump(lab_settings(URL)), "settings.yaml")
    assert settings.mode == "act"
    assert settings.metrics.prometheus.url == URL
    assert "[15s]" in settings.metrics.prometheus.queries.pod_cpu


def test_the_example_is_an_app_of_the_lab_with_a_neighbour_on_every_node() -> None:
    web, hog = yaml.safe_load_all(EXAMPLE.read_text())
    app = LabApp("web", cpu="5m", environment={"PROBE_ITERATIONS": "20000000"}, probe=ProbeTimes(failures=10))
    made = deployment(app, "default")["spec"]["template"]["spec"]
    ours = web["spec"]["template"]["spec"]
    assert ours == {name: made[name] for name in ours}
    assert hog["kind"] == "DaemonSet"
    assert hog["spec"]["template"]["spec"]["containers"][0]["image"] == APP_IMAGE


async def test_the_controllers_address_is_told_once_its_pod_is_ready() -> None:
    assert await controller_url(_Pods([], [_pod("False")], [_pod("True")])) == "http://10.200.5.2:8080"


async def test_a_controller_that_does_not_become_ready_is_told_with_its_reason() -> None:
    with pytest.raises(LabError, match=r"not Ready within 0.05 s: .*ErrImageNeverPull"):
        await controller_url(_Pods([_pod("False")]), 0.05)


@pytest.mark.parametrize(
    ("url", "told"),
    [("", "run --kubeconfig k --settings s"), ("http://10.200.5.2:8080", "status --server http://10.200.5.2:8080")],
)
def test_how_to_start_or_reach_a_controller_is_told(url: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_controller(Path("k"), Path("s"), url)
    assert told in (said := capsys.readouterr().out)
    assert ("mode: act" in said) is bool(url)
