"""Users' own metrics: what a good source brings about, and that a bad one is only reported."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from matching.plan import Plan
from reactor.background.metrics_collection import MetricsCollector
from reactor.cli.planning import make_plan
from reactor.cluster.reads import ClusterReader
from reactor.errors import MetricsError, NotFound
from reactor.settings.model import Settings
from reactor.signals import sources
from reactor.signals.measurements import MetricsSource
from reactor.signals.sources import SourcePod, SourceReading, load_source
from reactor.signals.testing import check_source
from tests.support.cluster import make_node, make_pod, make_settings
from tests.support.rig import Rig

Read = Callable[[Sequence[SourcePod], Sequence[str]], Any]
PODS = [SourcePod("shop", "web-1", "uid-web-1", "n1"), SourcePod("shop", "web-2", "uid-web-2", "n1")]


class Gpu:
    name = "gpu"
    answer: Read

    def read(self, pods: Sequence[SourcePod], nodes: Sequence[str]) -> Any:
        return type(self).answer(pods, nodes)


def good(pods: Sequence[SourcePod], nodes: Sequence[str]) -> SourceReading:
    return SourceReading({pod.uid: 8.0 for pod in pods}, dict.fromkeys(nodes, 20.0))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> type[Gpu]:
    """Installed, as by a package of its author."""
    entry = SimpleNamespace(name="gpu", value="gpus:Gpu", load=lambda: Gpu)
    monkeypatch.setattr(sources, "entry_points", lambda group, name="gpu": [entry] if name == "gpu" else [])
    Gpu.answer = staticmethod(good)
    return Gpu


class NoMetricsApi:
    async def get_raw(self, path: str, deadline: float = 30.0) -> bytes:
        raise NotFound(path)


def settings(planner: dict[str, Any] | None = None, timeout: float = 5.0) -> Settings:
    metrics = {"sources": {"names": ["gpu"], "timeout": timeout}, "metricsApi": {"enabled": False}}
    return make_settings(mode="act", metrics=metrics, planner=planner or {"name": "balance"})


def made(given: Settings) -> tuple[Rig, MetricsCollector]:
    rig = Rig(given)
    rig.sync(make_pod("web-1"), make_pod("web-2"), make_node("n1"), make_node("n2"))
    rig.measure({"web-1": 1.0, "web-2": 1.0}, {"n1": 2.0, "n2": 0.0})
    reader = cast(ClusterReader, NoMetricsApi())
    return rig, MetricsCollector(rig.state, reader, lambda: rig.settings, rig.clock, rig.instruments)


def plan_of(rig: Rig) -> Plan:
    return make_plan(rig.snapshot(), rig.settings).plan


@pytest.mark.parametrize("weights", [{"gpu": 1.0}, {"cpu": 1.0, "gpu": 3.0}])
@pytest.mark.parametrize("planner", ["balance", "greedy", "refine", "genetic"])
async def test_planners_weigh_the_axis(gpu: type[Gpu], planner: str, weights: dict[str, float]) -> None:
    rig, collector = made(settings({"name": planner, "parameters": {"weights": weights}}))
    await collector.once()
    plan = plan_of(rig)
    assert [move.target for move in plan.moves] == ["n2"], "two pods that use 8 of 20 each are on n1, and n2 is free"
    assert not collector.problems[MetricsSource.PLUGINS]


@pytest.mark.parametrize("planner", ["stable", "stable-paper", "balance"])
async def test_planners_without_weights_take_the_axis_as_it_is(gpu: type[Gpu], planner: str) -> None:
    rig, collector = made(settings({"name": planner}))
    await collector.once()
    plan = plan_of(rig)
    assert plan.planner == planner
    assert all(move.source == "n1" for move in plan.moves)


def late(_pods: Sequence[SourcePod], _nodes: Sequence[str]) -> SourceReading:
    threading.Event().wait(30.0)
    return SourceReading()


def failing(_pods: Sequence[SourcePod], _nodes: Sequence[str]) -> SourceReading:
    raise OSError("the agent is gone")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (failing, "source gpu: OSError: the agent is gone"),
        (late, "source gpu: no answer within 0.05 s"),
        (lambda _pods, _nodes: None, "source gpu: answered NoneType, not a SourceReading"),
        (lambda pods, _nodes: SourceReading({pod.uid: math.nan for pod in pods}), "2 values of pods are no number"),
        (lambda pods, _nodes: SourceReading({pods[0].uid: cast(float, "8 GB")}), "1 values of pods are no number"),
        (lambda _pods, nodes: SourceReading({}, {nodes[0]: -1.0}), "such as that of n1"),
    ],
)
async def test_a_bad_source_is_reported_and_stops_nothing(gpu: type[Gpu], answer: Read, problem: str) -> None:
    gpu.answer = staticmethod(answer)
    rig, collector = made(settings({"name": "balance", "parameters": {"weights": {"gpu": 1.0}}}, timeout=0.05))
    await collector.once()
    assert problem in collector.problems[MetricsSource.PLUGINS]
    up = rig.instruments.registry.get_sample_value("rematch_metrics_source_up", {"source": "rematch.sources"})
    assert up == 0
    assert plan_of(rig).moves == (), "nobody moves by what is not known"

    gpu.answer = staticmethod(good)
    await collector.once()
    assert not collector.problems[MetricsSource.PLUGINS]
    assert len(plan_of(rig).moves) == 1


async def test_an_old_reading_does_not_count_and_a_source_can_be_switched_off(gpu: type[Gpu]) -> None:
    rig, collector = made(settings())
    await collector.once()
    assert rig.snapshot().sources["gpu"].nodes == {"n1": 20.0, "n2": 20.0}
    rig.clock.set(rig.clock.now() + rig.settings.metrics.freshness + 1)
    assert rig.snapshot().sources == {}
    rig.settings = make_settings(mode="act", metrics={"metricsApi": {"enabled": False}})
    await collector.once()
    assert rig.state.sources == {}


def test_what_is_not_installed_or_has_a_taken_name_is_refused(gpu: type[Gpu], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MetricsError, match="source none: not installed; known are gpu"):
        load_source("none")
    monkeypatch.setattr(Gpu, "name", "cpu")
    with pytest.raises(MetricsError, match="calls itself 'cpu'"):
        load_source("gpu")


def test_authors_can_check_a_source(gpu: type[Gpu], monkeypatch: pytest.MonkeyPatch) -> None:
    check_source(Gpu(), PODS, ["n1"])
    monkeypatch.setattr(Gpu, "name", "cpu")
    with pytest.raises(AssertionError, match="the axis cpu is Rematch's own"):
        check_source(Gpu(), PODS, ["n1"])
    monkeypatch.setattr(Gpu, "name", "gpu")
    gpu.answer = staticmethod(lambda _pods, _nodes: SourceReading())
    with pytest.raises(AssertionError, match="none of the pods has a value"):
        check_source(Gpu(), PODS, ["n1"])
