from __future__ import annotations

from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from reactor.cluster.records import Pod
from reactor.decision.eligibility import Eligibility
from reactor.web.cluster_pages import CHIPS, EXPANDED_CHIPS, FEW_CHIPS, FrozenCluster
from reactor.web.query import OverviewQuery, PodsQuery, TopQuery
from reactor.web.view import Overview, SettingsView, Totals
from tests.support.cluster import GIB, make_eligibility, make_node, make_owner, make_pod, make_settings, make_snapshot

HEAD = Overview("t", "act", True, None, "stable", 0.8, 0.0, 0, 0, 0, SettingsView("d", "file"), (), (), ())


def pod(number: int, node: str | None, **fields: Any) -> Pod:
    return make_pod(f"p{number:04d}", uid=f"u{number}", node=node, owner=make_owner(), **fields)


def pages(pods: list[Pod], *nodes: str, **more: Any) -> FrozenCluster:
    snapshot = make_snapshot(pods, [make_node(name) for name in nodes], **more)
    return FrozenCluster(HEAD, make_eligibility(snapshot, make_settings()))


def totals(shown: Overview) -> Totals:
    assert shown.totals is not None
    return shown.totals


def test_totals_count_all_pods_and_skip_unmanaged_ones() -> None:
    system = pod(2, "a", namespace="kube-system")
    view = pages([pod(1, "a"), system, pod(3, None)], "a", failures={"p0001": 5.0, "p0002": 20.0})
    found = totals(view.overview(OverviewQuery()))
    assert (found.pods, found.managed, found.unhappy, found.pending) == (3, 2, 1, 1)
    assert found.lowest_happiness == 0.5


def test_pods_that_ended_and_pods_on_unknown_nodes_are_left_out() -> None:
    ended, lost = pod(1, "a", phase="Succeeded"), pod(2, "gone")
    found = totals(pages([ended, lost], "a", failures={"p0002": 9.0}).overview(OverviewQuery()))
    assert (found.pods, found.unhappy, found.lowest_happiness) == (0, 0, None)


def test_a_cut_card_keeps_unhappy_pods_in_name_order() -> None:
    view = pages([pod(number, "a") for number in range(52)], "a", failures={"p0050": 9.0, "p0030": 5.0})
    (shown,) = view.overview(OverviewQuery(chips=4)).nodes
    assert [chip.key for chip in shown.pods] == ["shop/p0000", "shop/p0001", "shop/p0030", "shop/p0050"]
    assert shown.counts is not None
    assert (shown.counts.pods, shown.counts.unhappy) == (52, 2)


def test_the_worst_nodes_come_first_when_not_all_are_shown() -> None:
    busy = {name: (cores, 1 * GIB) for name, cores in (("a", 1.0), ("b", 1.0), ("c", 3.9), ("d", 1.0))}
    pods = [pod(1, "b"), pod(2, "d"), pod(3, "d")]
    failures = {"p0001": 9.0, "p0002": 9.0, "p0003": 9.0}
    view = pages(pods, "a", "b", "c", "d", node_usage=busy, failures=failures)
    assert [shown.name for shown in view.overview(OverviewQuery(nodes=3)).nodes] == ["d", "b", "c"]
    assert [shown.name for shown in view.overview(OverviewQuery(nodes=3, page=2)).nodes] == ["a"]
    assert [shown.name for shown in view.overview(OverviewQuery(nodes=4)).nodes] == ["a", "b", "c", "d"]
    assert view.overview(OverviewQuery(nodes=3, page=9)).nodes == ()


def test_all_nodes_are_summarised_however_few_are_shown() -> None:
    usage = {"a": (3.9, GIB), "b": (0.2, 4.4 * GIB), "c": (0.2, GIB)}
    nodes = [make_node(name) for name in usage] + [make_node("d", ready=False, unschedulable=True)]
    snapshot = make_snapshot([pod(1, "a"), pod(2, "a")], nodes, node_usage=usage, failures={"p0001": 9.0, "p0002": 9.0})
    found = FrozenCluster(HEAD, make_eligibility(snapshot)).overview(OverviewQuery(nodes=1)).node_summary
    assert found is not None
    assert (found.not_ready, found.unschedulable, found.with_unhappy_pods, found.not_measured) == (1, 1, 1, 1)
    assert found.load_bands == (0, 1, 0, 0, 0, 1, 0, 0, 0, 1)


def test_an_expanded_node_shows_all_but_not_without_bound() -> None:
    view = pages([pod(number, "a") for number in range(EXPANDED_CHIPS + 5)], "a")
    assert len(view.overview(OverviewQuery(chips=3, expand=("a",))).nodes[0].pods) == EXPANDED_CHIPS


def test_a_search_finds_nodes_by_name_and_by_pod_and_pods_without_a_node() -> None:
    view = pages([pod(1, "a-1"), pod(2, "a-1"), pod(3, "b"), pod(4, None)], "a-1", "b")
    assert [len(shown.pods) for shown in view.overview(OverviewQuery(search="A-1")).nodes] == [2]
    found = view.overview(OverviewQuery(search="p0002"))
    assert [chip.key for chip in found.nodes[0].pods] == ["shop/p0002"]
    assert (totals(found).matching_nodes, totals(found).nodes, totals(found).pods) == (1, 2, 4)
    assert found.nodes[0].counts is not None
    assert found.nodes[0].counts.pods == 1
    waiting = view.overview(OverviewQuery(search="p0004"))
    assert ([chip.key for chip in waiting.pending], waiting.nodes) == (["shop/p0004"], ())


def test_nodes_whose_unhappy_pods_match_the_search_come_first() -> None:
    pods = [pod(1, "a"), pod(2, "a"), pod(12, "a"), pod(3, "b"), pod(13, "c")]
    view = pages(pods, "a", "b", "c", failures={"p0001": 9.0, "p0002": 9.0, "p0013": 9.0})
    assert [shown.name for shown in view.overview(OverviewQuery(nodes=1, search="p001")).nodes] == ["c"]


def test_cards_show_fewer_pods_where_not_all_nodes_are_shown() -> None:
    view = pages([pod(number, "a") for number in range(60)], "a", "b")
    assert len(view.overview(OverviewQuery()).nodes[0].pods) == CHIPS
    view = pages([pod(number, "a") for number in range(60)], "a", "b")
    assert len(view.overview(OverviewQuery(nodes=1)).nodes[0].pods) == FEW_CHIPS
    assert len(view.overview(OverviewQuery(nodes=1, chips=30)).nodes[0].pods) == 30


def test_only_pods_that_are_shown_are_judged() -> None:
    view = pages([pod(number, f"n{number % 20}") for number in range(400)], *(f"n{number}" for number in range(20)))
    with patch.object(Eligibility, "why_not_all", autospec=True, side_effect=Eligibility.why_not_all) as judged:
        view.overview(OverviewQuery(nodes=3, chips=4))
        view.pods(PodsQuery(limit=5))
    assert [len(call.args[1]) for call in judged.call_args_list] == [12, 5]


def test_what_a_node_requests_does_not_depend_on_the_search() -> None:
    view = pages([pod(1, "a", requests={"cpu": 1.0}), pod(2, "a", requests={"cpu": 0.5})], "a")
    gauge = view.overview(OverviewQuery(search="p0002")).nodes[0].cpu
    assert gauge is not None
    assert gauge.requested == 1.5


def test_pods_are_listed_page_by_page_the_worst_first() -> None:
    view = pages([pod(n, "a" if n % 2 else "b") for n in range(7)], "a", "b", failures={"p0005": 9.0, "p0002": 5.0})
    query = PodsQuery(limit=3)
    first = view.pods(query)
    assert [chip.key for chip in first.pods] == ["shop/p0005", "shop/p0002", "shop/p0000"]
    assert first.pods[0].node == "a"
    assert (first.totals.pods, first.totals.unhappy) == (7, 2)
    assert [chip.key for chip in view.pods(PodsQuery(limit=3, page=3)).pods] == ["shop/p0006"]
    assert [chip.key for chip in view.pods(PodsQuery(node="a", search="p0003")).pods] == ["shop/p0003"]


def test_top_lists_the_pods_that_use_most_and_the_unmeasured_last() -> None:
    used = {"p0001": (0.2, 3 * GIB), "p0002": (0.9, 1 * GIB), "p0003": (0.5, 2 * GIB)}
    pods = [pod(number, "a", requests={"cpu": 0.1}) for number in range(1, 5)]
    view = pages(pods, "a", usage=used, failures={"p0004": 9.0})
    assert _top(view, TopQuery()) == ["shop/p0002", "shop/p0003", "shop/p0001", "shop/p0004"]
    assert _top(view, TopQuery(sort="memory", limit=2)) == ["shop/p0001", "shop/p0003"]
    assert _top(view, TopQuery(sort="happiness", limit=1)) == ["shop/p0004"]
    assert _top(view, TopQuery(namespace="other")) == []
    first = view.top(TopQuery(limit=1))
    cpu = first.pods[0].resources[0]
    assert (cpu.axis, cpu.usage, cpu.request) == ("cpu", 0.9, 0.1)
    assert first.totals.pods == 4


def _top(view: FrozenCluster, query: TopQuery) -> list[str]:
    return [row.pod.key for row in view.top(query).pods]


@given(
    st.lists(st.lists(st.one_of(st.none(), st.floats(0.1, 30)), max_size=12), max_size=8),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_a_page_never_exceeds_its_bounds_nor_hides_a_worse_pod(
    groups: list[list[float | None]], nodes: int, chips: int
) -> None:
    pods = [pod(i * 100 + j, f"n{i}") for i, group in enumerate(groups) for j in range(len(group))]
    failures = {f"p{i * 100 + j:04d}": bad for i, group in enumerate(groups) for j, bad in enumerate(group) if bad}
    view = pages(pods, *(f"n{i}" for i in range(len(groups))), failures=failures)
    shown = view.overview(OverviewQuery(nodes=nodes, chips=chips))
    everything = {card.name: card for card in view.overview(OverviewQuery(nodes=100, chips=100)).nodes}
    assert len(shown.nodes) == min(nodes, len(groups))
    for card in shown.nodes:
        hidden = [chip for chip in everything[card.name].pods if chip not in card.pods]
        assert len(card.pods) <= chips
        assert all(chip.happy for chip in hidden) or all(not chip.happy for chip in card.pods)
    hidden_nodes = everything.keys() - {card.name for card in shown.nodes}
    fewest = min((card.counts.unhappy for card in shown.nodes if card.counts), default=0)
    unhappy = {name: sum(not chip.happy for chip in card.pods) for name, card in everything.items()}
    assert max((unhappy[name] for name in hidden_nodes), default=0) <= fewest
