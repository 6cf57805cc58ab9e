from __future__ import annotations

from types import SimpleNamespace

import pytest

from reactor.cli import top
from reactor.cli.top import TopRequest, render_nodes, render_pods, top_nodes, top_pods
from reactor.errors import InputError
from reactor.web.view import AxisView, Gauge, NodeView, PodChip, PodResources, PodTotals, TopPage

UNHAPPY = PodChip("u1", "shop/web", 0.5, 0.9, happy=False, node="n1")
UNMEASURED = PodChip("u2", "shop/new", None, 0.9, happy=True, ready=False, phase="Pending")


def axes(cpu: float | None, memory: float | None) -> tuple[AxisView, ...]:
    return AxisView("cpu", "cores", cpu, 0.1, cpu), AxisView("memory", "bytes", memory, 2.0**26, memory)


def words(line: str) -> str:
    return " ".join(line.split())


def test_pods_show_usage_request_and_peak_as_kubectl_writes_amounts() -> None:
    rows = (PodResources(UNHAPPY, axes(0.25, 2.0**27)), PodResources(UNMEASURED, axes(None, None)))
    head, first, second = map(words, render_pods(TopPage(0.0, rows, PodTotals(2, 2, 1))).splitlines())
    assert head == "POD NODE CPU REQUEST PEAK MEMORY REQUEST PEAK HAPPINESS READY"
    assert first == "shop/web n1 250m 100m 250m 128Mi 64Mi 128Mi 0.50 unhappy yes"
    assert second == "shop/new <none> <unknown> 100m <unknown> <unknown> 64Mi <unknown> <none> no, Pending"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"namespace": "nope"}, "there is no namespace nope, or no pod in it"),
        ({"namespace": "shop", "search": "x"}, "no pod matches"),
        ({"node": "nope"}, "there is no node nope"),
        ({"node": "n1"}, "no pod matches"),
    ],
)
def test_a_name_that_nothing_has_is_named(options: dict[str, str], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a controller with one node and pods in `shop` only; none of them is on the node, or has an x."""

    def answer(_server: str, path: str, _kind: object, **query: str) -> object:
        if path == "overview":
            return SimpleNamespace(nodes=(NodeView("n1", True, False, None, None, ()),))
        found = query.get("namespace") == "shop" and "search" not in query
        return TopPage(0.0, (), PodTotals(1 if found else 0, 0, 0))

    monkeypatch.setattr(top, "fetch", answer)
    fields = {"namespace": "", "node": "", "search": "", "sort_by": "cpu", "output": "table", "server": "http://c"}
    assert top_pods(TopRequest(limit=50, **(fields | options))) == text


def test_what_is_no_url_is_said_to_be_none() -> None:
    with pytest.raises(InputError, match="'foo' is no URL; write http://HOST:PORT"):
        top_nodes(TopRequest("", "", "", "cpu", 50, "table", "foo"))


def test_a_cut_list_says_so() -> None:
    text = render_pods(TopPage(0.0, (PodResources(UNHAPPY, axes(0.25, 0.0)),), PodTotals(7, 7, 1)))
    assert text.splitlines()[-1].startswith("1 of 7 pods")
    assert render_pods(TopPage(0.0, (), PodTotals(0, 0, 0))) == "no pod matches"


def test_nodes_show_shares_and_never_read_unmeasured_as_idle() -> None:
    busy = NodeView("n1", True, False, Gauge(2.0, 4.0, "cores", 1.0), None, (), PodTotals(3, 3, 1))
    silent = NodeView("n2", True, False, Gauge(None, 4.0, "cores", 0.5), None, ())
    _, first, second = map(words, render_nodes([busy, silent]).splitlines())
    assert first == "n1 2000m 50% 1000m <unknown> <unknown> <unknown> 3 1"
    assert second == "n2 <unknown> <unknown> 500m" + 5 * " <unknown>"
