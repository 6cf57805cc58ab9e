"""The power of a node: by annotation, then by class, then by its cores; and what a cluster draws now."""

from __future__ import annotations

import pytest

from matching.problem import Power
from reactor.settings.model import Energy
from reactor.state.node_power import node_power, power_now
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_owner, make_pod, make_usage, make_view

CLASS = {"node.kubernetes.io/instance-type": "small"}
SETTINGS = Energy.model_validate({"classes": {"small": {"idle": 10, "full": 30}}})


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({}, {}, Power(4 * 0.74, 4 * 3.5)),
        (CLASS, {}, Power(10.0, 30.0)),
        (CLASS, {"rematch.io/full-watts": "45"}, Power(10.0, 45.0)),
        ({}, {"rematch.io/idle-watts": "60", "rematch.io/full-watts": "200"}, Power(60.0, 200.0)),
        ({}, {"rematch.io/idle-watts": "much"}, Power(4 * 0.74, 4 * 3.5)),
        ({}, {"rematch.io/idle-watts": "60"}, Power(60.0, 60.0)),
    ],
)
def test_what_is_stated_nearer_to_the_node_has_priority(
    labels: dict[str, str], annotations: dict[str, str], expected: Power
) -> None:
    node = make_node("n1", cpu=4.0, labels=labels, annotations=annotations)
    assert node_power(node, SETTINGS) == expected


def test_the_cluster_draws_what_its_measured_nodes_draw() -> None:
    """A node with nothing but an agent is idle; one that nobody measures is in no figure."""
    agent = make_pod("agent-1", node="n2", owner=make_owner("agent", "DaemonSet"))
    pods = [make_pod("web-1", node="n1"), agent]
    view = make_view(pods, [make_node(name, cpu=4.0, labels=CLASS) for name in ("n1", "n2", "n3")])
    usage = make_usage(view, {}, {"n1": (2.0, 1e9), "n2": (0.4, 1e9)}, now=NOW)
    found = power_now(view, usage, SETTINGS)
    assert found is not None
    assert found.watts == pytest.approx(20 + 12)
    assert found.idle_watts == pytest.approx(12)
    assert (found.idle_nodes, found.not_measured) == (1, 1)
    assert power_now(view, make_usage(view, {}, {}, now=NOW), SETTINGS) is None
