"""Watts in /metrics, of idle nodes and of those in use."""

from __future__ import annotations

import math

import pytest
from prometheus_client import CollectorRegistry

from reactor.record.power_metrics import PowerMetrics
from tests.support.cluster import make_node, make_pod
from tests.support.rig import Rig


def test_idle_nodes_are_told_from_those_in_use() -> None:
    rig = Rig()
    rig.sync(make_pod("web-1"), make_node("n1", cpu=4.0), make_node("n2", cpu=4.0))
    registry = CollectorRegistry()
    registry.register(PowerMetrics(rig.state, lambda: rig.settings))
    drawn = {nodes: registry.get_sample_value("rematch_power_watts", {"nodes": nodes}) for nodes in ("idle", "in use")}
    assert all(watts is not None and math.isnan(watts) for watts in drawn.values()), "nothing is measured"
    rig.measure({"web-1": 2.0}, {"n1": 2.0, "n2": 0.0})
    assert registry.get_sample_value("rematch_power_watts", {"nodes": "idle"}) == pytest.approx(4 * 0.74)
    assert registry.get_sample_value("rematch_power_watts", {"nodes": "in use"}) == pytest.approx(4 * (0.74 + 3.5) / 2)
